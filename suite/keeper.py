"""A process behind walls, and above it a keeper that holds no foreign code and answers for nothing being left of it.

    whoever starts it ── keeper ─┬─ init       pid 1 of the namespace: when it ends the kernel kills all that is in it
                                 └─ method     pid 2

Standard input stays open as a leash: when it ends, since the starter has let go of it or is dead, the keeper kills the
method. If the keeper dies, init ends, and so does everything. Where there is no pid namespace the keeper is the
subreaper of all that descends from the method and kills it before it ends itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from suite import confine
from suite.walls import cgroup, namespaces, reaper, syscalls


def keep(work: Callable[[confine.Ground], NoReturn], scratch: Path, without: frozenset[str] = frozenset()) -> int:
    """Do `work` in a process for which the ground is laid, to its end: its exit code (128 + a signal).

    `work` closes the walls before it runs what it does not trust. `scratch` is an empty folder;
    `without` as in `confine.lay`.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is meant for the method
    ground = confine.lay(scratch, without)
    init, held = (0, None) if ground.kind == "none" else namespaces.fork_init()
    keeper = os.getpid()
    method = os.fork()
    if method == 0:
        _become(keeper, held)
        work(ground)
    _watch(method)
    code = os.waitstatus_to_exitcode(os.waitpid(method, 0)[1])
    if init:
        os.kill(init, signal.SIGKILL)
        os.waitpid(init, 0)
    else:
        reaper.kill_descendants()
    cgroup.remove(keeper)
    return code if code >= 0 else 128 - code


def _become(keeper: int, held: int | None) -> None:
    """What the method's process does first."""
    syscalls.die_with_parent(signal.SIGKILL)
    if held is not None:
        os.close(held)
    elif os.getppid() != keeper:  # in a namespace that can not be seen, and init sees to it
        os._exit(1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)


def _watch(method: int) -> None:
    """Until the method has ended, of itself or since the leash has."""
    handle = os.pidfd_open(method)
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    poll.register(handle, select.POLLIN)
    while handle not in {descriptor for descriptor, _ in poll.poll()}:
        if not os.read(sys.stdin.fileno(), 4096):
            os.kill(method, signal.SIGKILL)
    os.close(handle)
