"""Control groups of a keeper, where they can be made: a cap on tasks, a small share of cpu time; version 1 or 2."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "derby-"
CONTROLLERS = ("pids", "cpu")


def _parent(controller: str) -> Path | None:
    """Our own group in the hierarchy that has the controller."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return ROOT / controller / path.lstrip("/")
    unified = [ROOT / line.split(":", 2)[2].lstrip("/") for line in lines if line.startswith("0::")]
    return unified[0] if unified else None


def make(keeper: int, most: int) -> Path | None:
    """A new group of at most `most` tasks, named after its keeper; None where none can be made."""
    return _make(keeper, "pids", {"pids.max": str(most)})


def make_light(keeper: int) -> Path | None:
    """A new group with a tenth of another's claim to cpu time, however many tasks it has; None where none can be made.

    Before `make`, whose group it may be as well.
    """
    return _make(keeper, "cpu", {"cpu.weight": "10", "cpu.shares": "102"})


def _make(keeper: int, controller: str, settings: dict[str, str]) -> Path | None:
    """`settings`: the same thing in the words of either version; one of the files must be there."""
    parent = _parent(controller)
    if parent is None:
        return None
    group = parent / f"{PREFIX}{keeper}"
    try:
        group.mkdir(exist_ok=True)
        name = next((name for name in settings if (group / name).exists()), next(iter(settings)))
        (group / name).write_text(settings[name])
    except OSError:  # read-only, not ours, or a version 2 parent that does not hand the controller down
        with contextlib.suppress(OSError):
            group.rmdir()
        return None
    return group


def enter(group: Path | None, pid: int) -> str:
    """Put the process `pid` (0: this one) into the group; words for the profile."""
    if group is None:
        return "none"
    try:
        (group / "cgroup.procs").write_text(str(pid))
        return f"cgroup, {(group / 'pids.max').read_text().strip()} tasks"
    except OSError:
        return "none"


def enter_light(group: Path | None) -> bool:
    """Put this process into the group of `make_light`; whether it is in it."""
    try:
        return group is not None and (group / "cgroup.procs").write_text("0") > 0
    except OSError:
        return False


def has_cpu_group() -> bool:
    """Whether this process certainly is in a group of the cpu controller that is not the root of all."""
    group = _parent("cpu")
    if group is None:
        return False
    if ROOT / "cpu" in group.parents:  # version 1
        return True
    return any((above / "cpu.weight").exists() for above in (group, *group.parents))  # the root of all has none


def close(keeper: int) -> None:
    """Let nothing more be started in the group of this keeper."""
    parent = _parent("pids")
    if parent is not None:
        with contextlib.suppress(OSError):  # there is none
            (parent / f"{PREFIX}{keeper}" / "pids.max").write_text("0")


def sweep() -> None:
    """Remove what keepers left that were killed together with whoever waits for them."""
    for parent in filter(None, map(_parent, CONTROLLERS)):
        for group in parent.glob(f"{PREFIX}*"):
            if not Path("/proc", group.name.removeprefix(PREFIX)).exists():
                with contextlib.suppress(OSError):
                    group.rmdir()


def remove(keeper: int) -> None:
    """Remove the groups of an ended keeper, if there are any; their last tasks may need a moment to leave."""
    for parent in filter(None, map(_parent, CONTROLLERS)):
        _remove(parent / f"{PREFIX}{keeper}")


def _remove(group: Path) -> None:
    for _ in range(20):
        try:
            os.rmdir(group)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002)
        else:
            return
