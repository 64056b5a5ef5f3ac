"""Ends all processes that descend from this one, for kernels that grant no pid namespace."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from . import cgroup


def kill_descendants() -> None:
    """Kill until none is left. The caller is a subreaper, so that orphans come to it instead of escaping."""
    cgroup.close(os.getpid())
    while True:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def descendants(ancestor: int) -> set[int]:
    """Processes that descend from `ancestor`, from one pass over /proc."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(folder.name)] = int(fields[1])
    found: set[int] = set()
    fresh = {ancestor}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found
