"""The source of a trial's baseline, if the task's folder is at hand and is still the one that was raced."""

from __future__ import annotations

from pathlib import Path

from suite import task
from suite.errors import TaskError
from suite.types import Candidate, TrialSpec


def find(tasks: Path, spec: TrialSpec) -> Candidate | str:
    """The baseline out of the folder `tasks`, or why it is not available here (a ledger does not hold it).

    The task's digest covers the baseline's files: where it matches, this is what the trial was measured against.
    """
    known = {path.parent.name: path.parent for path in tasks.glob("*/task.toml")}
    # Looked up and not joined to a path: the name comes from a ledger, which may be a stranger's.
    folder = known.get(spec.task)
    if folder is None:
        return f"{tasks} holds no task of that name; start the board with `derby board` from an installation that does"
    try:
        found = task.load(folder, spec.lane)
    except TaskError as error:
        return f"the task in {folder} cannot be loaded: {error.came}"
    if found.digest != spec.task_digest:
        return (
            f"the task in {folder} has the digest {found.digest[:16]}, the trial was run on {spec.task_digest[:16]}; "
            "check out the revision that the trial was run at"
        )
    return task.baseline(found)
