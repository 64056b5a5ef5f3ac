"""A control group for each candidate, where one can be made: a cap on processes and threads, version 1 or 2."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "derby-"


def _parent() -> Path | None:
    """Our own group in the hierarchy that has the pids controller."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "pids" in controllers.split(","):
            return ROOT / "pids" / path.lstrip("/")
    unified = [ROOT / line.split(":", 2)[2].lstrip("/") for line in lines if line.startswith("0::")]
    return unified[0] if unified else None


def make(keeper: int, most: int) -> Path | None:
    """A new group of at most `most` tasks, named after its keeper; None where none can be made."""
    parent = _parent()
    if parent is None:
        return None
    group = parent / f"{PREFIX}{keeper}"
    try:
        group.mkdir(exist_ok=True)
        (group / "pids.max").write_text(str(most))
    except OSError:  # read-only, not ours, or a version 2 parent that does not hand the controller down
        remove(keeper)
        return None
    return group


def enter(group: Path | None, pid: int) -> str:
    """Put the process `pid` into the group; words for the profile."""
    if group is None:
        return "none"
    try:
        (group / "cgroup.procs").write_text(str(pid))
        return f"cgroup, {(group / 'pids.max').read_text().strip()} tasks"
    except OSError:
        return "none"


def close(keeper: int) -> None:
    """Let nothing more be started in the group of this keeper."""
    parent = _parent()
    if parent is not None:
        with contextlib.suppress(OSError):  # there is none
            (parent / f"{PREFIX}{keeper}" / "pids.max").write_text("0")


def sweep() -> None:
    """Remove what keepers left that were killed together with their zygote."""
    parent = _parent()
    if parent is None or not parent.is_dir():
        return
    for group in parent.glob(f"{PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(PREFIX)).exists():
            with contextlib.suppress(OSError):
                group.rmdir()


def remove(keeper: int) -> None:
    """Remove the group of an ended keeper, if there is one; its last tasks may need a moment to leave."""
    parent = _parent()
    if parent is None:
        return
    group = parent / f"{PREFIX}{keeper}"
    for _ in range(20):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002)
        else:
            return
