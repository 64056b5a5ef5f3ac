"""The courses: a folder with a task.toml is a task. Imports nothing of ours."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Names of all tasks of this installation, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in HERE.glob("*/task.toml")))


def folder(name: str) -> Path:
    """The task's folder. Raises `KeyError` for a name that is not among `names()`."""
    if name not in names():
        raise KeyError(name)
    return HERE / name
