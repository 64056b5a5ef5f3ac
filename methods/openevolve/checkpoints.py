"""Checkpoints of OpenEvolve: which are sound, and a clean copy of one to go on from.

The package writes them file by file. Loading one without metadata starts over in silence, loading one that lacks a
program loses it, and every program file that lies about is loaded, wanted or not. When its workers are dead it takes
the run for finished and writes one more, numbered as if every iteration had been done: that one is left alone.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from methods.openevolve.settings import WITHOUT_END

KEPT = 3
"""Newest checkpoints of an attempt that are kept; each holds the whole database."""


def iteration(checkpoint: Path) -> int:
    """The number in the name of a checkpoint's folder, 0 if there is none."""
    number = checkpoint.name.removeprefix("checkpoint_")
    return int(number) if number.isdecimal() else 0


def of(attempt: Path) -> list[Path]:
    """The checkpoints of an attempt, sound or not, the newest first."""
    every = (attempt / "checkpoints").glob("checkpoint_*")
    return sorted((one for one in every if iteration(one) < WITHOUT_END), key=iteration, reverse=True)


def prune(attempt: Path) -> None:
    """Remove all but the newest."""
    for checkpoint in of(attempt)[KEPT:]:
        shutil.rmtree(checkpoint, ignore_errors=True)


def newest(folder: Path) -> Path | None:
    """The sound checkpoint with the highest iteration among all attempts beneath `folder`."""
    every = [checkpoint for attempt in sorted(folder.glob("attempt_*")) for checkpoint in of(attempt)]
    return max(filter(is_sound, every), key=iteration, default=None)


def is_sound(checkpoint: Path) -> bool:
    """Whether metadata and every program an island names can be read, and there is one at least."""
    names = _islands(checkpoint)
    return bool(names) and all(_program(checkpoint, name) is not None for name in names)


def repaired(checkpoint: Path, target: Path) -> Path:
    """A copy of a sound checkpoint at `target` without programs that no island names."""
    (target / "programs").mkdir(parents=True)
    shutil.copyfile(checkpoint / "metadata.json", target / "metadata.json")
    for name in sorted(_islands(checkpoint)):
        shutil.copyfile(_file(checkpoint, name), _file(target, name))
    return target


def _islands(checkpoint: Path) -> set[str]:
    """The ids of all programs on islands; empty if that can not be told."""
    metadata = _read(checkpoint / "metadata.json")
    islands = metadata.get("islands") if isinstance(metadata, dict) else None
    if not isinstance(islands, list) or not all(isinstance(island, list) for island in islands):
        return set()
    return {str(name) for island in islands for name in island}


def _program(checkpoint: Path, name: str) -> dict[str, Any] | None:
    program = _read(_file(checkpoint, name))
    whole = isinstance(program, dict) and program.get("id") == name and isinstance(program.get("code"), str)
    return program if whole else None


def _file(checkpoint: Path, name: str) -> Path:
    return checkpoint / "programs" / f"{name}.json"


def _read(path: Path) -> Any:
    """A JSON file, None if it is not there or breaks off."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
