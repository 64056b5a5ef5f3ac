"""Reads the cheats: the trick, where the catalogue of tricks lists it, and the verdicts that are acceptable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from suite.task import from_files
from suite.types import Candidate, Status, Task

ROOT = Path(__file__).parents[2]
KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.*"))


@dataclass(frozen=True)
class Cheat:
    """`speed` is what may be scored if the verdict is PASSED: "any", "below 1.0", "no faster than control_right"."""

    path: Path
    trick: str
    catalogue: str
    verdicts: frozenset[Status]
    speed: str | None


def read(path: Path) -> Cheat:
    header = re.sub(r'^(?:// ?|""")', "", path.read_text(), flags=re.MULTILINE)
    trick = header.splitlines()[0]
    catalogue = re.search(r"^catalogue: (.+)$", header, re.MULTILINE)
    verdict = re.search(r"^verdict: (.+)$", header, re.MULTILINE)
    assert catalogue and verdict, f"{path.name} says neither what it is nor what must come of it"
    parts = [part.strip() for part in verdict.group(1).split(",")]
    passed = [part.removeprefix("PASSED").strip() for part in parts if part.startswith("PASSED")]
    return Cheat(
        path=path,
        trick=trick,
        catalogue=catalogue.group(1),
        verdicts=frozenset(Status(part.split()[0]) for part in parts),
        speed=(passed[0].removeprefix("at ").removesuffix(" speed") or "any") if passed else None,
    )


def candidate(cheat: Cheat, task: Task, folder: Path) -> Candidate:
    """The cheat as a candidate; it is told where the repository lies, so that looking for it is not what stops it."""
    copy = folder / cheat.path.name
    copy.write_text(cheat.path.read_text().replace("@REPOSITORY@", str(ROOT)))
    return from_files(task, [copy])
