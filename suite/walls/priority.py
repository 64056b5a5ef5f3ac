"""A small claim to cpu time: what runs so leaves nearly all to whoever else wants it, and can not change that.

A tenth, in all, of what one ordinary process gets. Less would starve it on a busy machine; the scheduler's idle class,
which gives way faster still, got no time at all beside four busy processes.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from . import cgroup, syscalls

NICE = 10
"""The kernel weighs it 110, where 0 is weighed 1024."""


def give_way(group: Path | None) -> tuple[str, bool]:
    """For this process and all it starts, for good: words for the profile; whether a new session would change nothing.

    `group`: of `cgroup.make_light`. Where there is none, and the kernel shares cpu time between sessions first, the
    session gets the small claim; a new one would have a claim of its own. Where it does not, every process has one.
    """
    with contextlib.suppress(PermissionError):  # it has a smaller one already
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    for limit in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):  # 0: there is no way back
        resource.setrlimit(limit, (0, 0))
    if cgroup.enter_light(group):
        return "a tenth in all, cgroup", True
    if not sessions_compete():
        return "a tenth each", True
    try:
        syscalls.write("/proc/self/autogroup", str(NICE))
    except OSError:
        return "a tenth each of a session's", False
    return "a tenth in all, one session", False


def sessions_compete() -> bool:
    """Whether the kernel shares cpu time between sessions ("autogroup") where this process is."""
    try:
        switch = Path("/proc/sys/kernel/sched_autogroup_enabled").read_text()
    except OSError:
        return False
    return switch.strip() == "1" and not cgroup.has_cpu_group()
