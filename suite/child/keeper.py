"""One process between the zygote and a candidate: makes the namespaces, and answers for their being empty at the end.

    zygote ── keeper ─┬─ init        pid 1 of the namespace: when it dies the kernel kills all that is in it
                      └─ candidate   pid 2

Both are children of the keeper, which itself stays outside, so it knows the pids that the judge sees. The candidate
must be waited for before init: init's own end waits until the namespace is empty.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket

import sandbox
import wire
import worker
from walls import cgroup, namespaces, reaper, syscalls

TASKS = 64
"""Most processes and threads of a candidate, beyond the threads it is given."""


def run(order: dict, fds: list[int]) -> None:
    """The keeper's whole life. `fds`: the candidate's channel, the keeper's own, log, inputs, outputs."""
    channel = socket.socket(fileno=fds[1])
    profile = {"namespaces": order["namespaces"]}
    separate = order["namespaces"] != "none"
    if separate:
        namespaces.enter(order["namespaces"])
    # Only now: entering a user namespace changes credentials, which clears it.
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != order["zygote"]:
        return
    if not separate:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    profile["scratch"] = namespaces.mount_scratch(order["scratch"]) if separate else "folder"
    # Not later: /proc, which says where our group is, becomes the namespace's own.
    group = None if "cgroup" in order["without"] else cgroup.make(os.getpid(), TASKS + order["threads"])
    init, held = namespaces.start_init() if separate else (0, None)
    candidate = os.fork()
    if candidate == 0:
        channel.close()
        if held is not None:
            os.close(held)
        worker.run(order, [fds[0], *fds[2:]], separate)
    for fd in (fds[0], *fds[2:]):
        os.close(fd)
    # While the candidate's process sets itself up: moving a process between groups may wait for the whole kernel.
    profile["pids"] = cgroup.enter(group, candidate)
    words = sandbox.in_words(profile)
    channel.send(wire.pack(wire.Message(wire.Kind.STARTED, number=init, code=candidate, text=words)))
    _watch(channel, init, candidate)


def _watch(channel: socket.socket, init: int, candidate: int) -> None:
    """Until the candidate ends or the judge asks (or is gone): then kill and reap everything, and say so."""
    ended = os.pidfd_open(candidate)
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    poller.register(ended, select.POLLIN)
    poller.poll()
    # What it died of must be known before we kill it ourselves.
    done, status = os.waitpid(candidate, os.WNOHANG)
    if not done:
        os.kill(candidate, signal.SIGKILL)
        _, status = os.waitpid(candidate, 0)
    with contextlib.suppress(OSError):  # the judge is gone; the killing goes on
        channel.send(wire.pack(wire.Message(wire.Kind.EXITED, code=status)))
    if init:
        os.kill(init, signal.SIGKILL)
        os.waitpid(init, 0)
    else:
        reaper.kill_descendants()
    with contextlib.suppress(OSError):
        channel.send(wire.pack(wire.Message(wire.Kind.EMPTY)))
