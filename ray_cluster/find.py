"""Finds a task by the name or the path a user gave."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import tasks
from suite.errors import TaskError
from suite.strict import nearest
from suite.task import load
from suite.types import Task


def task_folder(name: str) -> Path:
    """The folder of a task that comes with the suite, or any folder with a task.toml. Raises `TaskError`."""
    if name in tasks.names():
        return tasks.folder(name)
    path = Path(name)
    with suppress(OSError):  # a name longer than any path may be
        if (path / "task.toml").is_file():
            return path
    raise TaskError(
        f"there is no task {name!r}",
        f"one of {', '.join(tasks.names())}, or a folder with a task.toml",
        nearest(name, tasks.names()).replace(f"remove {name!r}", "see `derby list tasks`"),
    )


def find_task(name: str, lane: str) -> Task:
    return load(task_folder(name), lane)
