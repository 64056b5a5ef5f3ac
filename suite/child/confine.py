"""Runs one program (a compiler) behind the sandbox's walls: no network, no other files, limited time and memory."""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import sys

import sandbox
from walls import namespaces, reaper, syscalls

TIMED_OUT, NOT_STARTED = 124, 125
"""Exit codes that are not the program's own."""


def run(config: dict) -> None:
    """Run `config["run"]` and exit with its code. Ends it when time is up or standard input closes (the judge is gone).

    `read`, `write`: folders; `environment`; `seconds` of wall time; `memory_bytes`, `file_bytes`: limits.
    """
    kind = namespaces.find()
    separate = kind != "none"
    if separate:
        namespaces.enter(kind)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    program = os.fork()
    if program == 0:
        _become(config, separate)
    poller = select.poll()
    poller.register(0, select.POLLIN)
    ended = os.pidfd_open(program)
    poller.register(ended, select.POLLIN)
    events = dict(poller.poll(config["seconds"] * 1000))
    if ended not in events:
        os.kill(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    # In a namespace the program was its init, and all went with it.
    if not separate:
        reaper.kill_descendants()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(TIMED_OUT if ended not in events else code if code >= 0 else 128 - code)


def _become(config: dict, separate: bool) -> None:
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        proc = namespaces.mount_proc() if separate else "shared"
        sandbox.limit(config["memory_bytes"], config["file_bytes"])
        seconds = math.ceil(config["seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        read = [*config["read"], *sandbox.proc_paths(proc)]
        sandbox.close(read, config["write"], processes=True, without=frozenset(config["without"]))
        os.execve(config["run"][0], config["run"], config["environment"])
    except BaseException as error:  # noqa: BLE001 the fence: the fork must not return into the caller
        os.write(2, f"the compiler could not be started: {error}\n".encode())
    finally:
        os._exit(NOT_STARTED)
