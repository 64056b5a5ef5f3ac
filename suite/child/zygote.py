"""The zygote: imports torch once and forks a keeper for each order that comes down its socket.

It must have one thread only (a forked copy of an OpenMP or BLAS pool hangs), holds no secret, and ends with the judge.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import socket
import sys
import traceback

import keeper
import pages
import wire
from walls import cgroup, namespaces, reaper, syscalls

FDS = 5


def run(config: dict) -> None:
    """Serve until the judge's end of the socket closes, then leave nothing behind."""
    control = socket.socket(fileno=config["fd"])
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"the zygote has {threads} threads instead of 1: a library ignores OPENBLAS_NUM_THREADS and its like")
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)  # so that orphans of a killed keeper are reaped
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    cgroup.sweep()
    config["namespaces"] = "none" if "namespaces" in config["without"] else namespaces.find()
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would write to, and so unshare, every page; children enable it again
    pages.gather()
    control.send(wire.pack(wire.Message(wire.Kind.READY)))
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(wake, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 1024)
            _reap()
        if control.fileno() in ready:
            order, fds = wire.receive_json(control, FDS)
            if order is None:
                break
            _fork_keeper(order | config, fds, [control.fileno(), wake, woken])
    _end(config["scratch_root"])


def _fork_keeper(order: dict, fds: list[int], ours: list[int]) -> None:
    parent = os.getpid()
    if os.fork() == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in ours:
                os.close(fd)
            keeper.run(order | {"zygote": parent}, fds)
        except BaseException:  # noqa: BLE001 the fence: a fork must never go on as a second zygote
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)
    for fd in fds:
        os.close(fd)


def _reap() -> None:
    """Take in the ended children; a keeper's control group goes with it."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            cgroup.remove(pid)


def _end(scratch_root: str) -> None:
    """The judge is gone, or wants no more of us."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reaper.kill_descendants()
    cgroup.sweep()
    shutil.rmtree(scratch_root, ignore_errors=True)
