"""Namespaces of one's own: tried, entered, given an init, and furnished with a private /proc and folders in memory."""

from __future__ import annotations

import functools
import operator
import os
import signal
import socket
from collections.abc import Callable

from . import syscalls

FLAGS = {
    "user": syscalls.CLONE_NEWUSER,
    "pid": syscalls.CLONE_NEWPID,
    "net": syscalls.CLONE_NEWNET,
    "mnt": syscalls.CLONE_NEWNS,
    "ipc": syscalls.CLONE_NEWIPC,
}
KINDS = ("user+pid+net+mnt+ipc", "pid+net+mnt+ipc")
"""With a user namespace of one's own, which needs no privilege; or, as root, without."""
SCRATCH_BYTES, SCRATCH_FILES = 256 << 20, 4096
CAT = "/bin/cat"
"""Waits for the end of its standard input, and is on every Linux."""


def find(kinds: tuple[str, ...] = KINDS, furnish: Callable[[], None] | None = None) -> str:
    """The first of `kinds` that this process may enter and `furnish`, tried in a fork; or "none".

    Some systems grant a user namespace and then refuse to map the user into it, so the way is gone to its end.
    """
    for kind in kinds:
        trial = os.fork()
        if trial == 0:
            try:
                enter(kind)
                if furnish is not None:
                    furnish()
            except OSError:
                os._exit(1)
            os._exit(0)
        if os.waitpid(trial, 0)[1] == 0:
            return kind
    return "none"


def enter(kind: str) -> None:
    """Namespaces for the children of this process, and a private mount tree for itself. Raises `OSError`."""
    user, group = os.getuid(), os.getgid()
    syscalls.unshare(functools.reduce(operator.or_, (FLAGS[name] for name in kind.split("+"))))
    if kind.startswith("user"):
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            syscalls.write(f"/proc/self/{name}", text)
    syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)


def start_init() -> tuple[int, int]:
    """Pid 1 of the namespace, which does nothing but end, and everything in the namespace with it, when the last copy
    of a descriptor is closed: its pid and that descriptor. To be called once, by who has entered.

    Not a fork, which would copy the caller's page table. Orphans are reaped by the kernel, since SIGCHLD is ignored
    (which survives exec). A socket, and not a pipe, since what is inside could open a pipe for writing through /proc.
    """
    life, held = socket.socketpair()
    with life:
        actions = [(os.POSIX_SPAWN_DUP2, life.fileno(), 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            init = os.posix_spawn(CAT, [CAT], {}, file_actions=[*actions, (os.POSIX_SPAWN_DUP2, 1, 2)])
        finally:
            signal.signal(signal.SIGCHLD, before)
    return init, held.detach()


def fork_init() -> tuple[int, int]:
    """As `start_init`, with an init that nothing inside can look into: whoever shares the user of a program that was
    exec'd sees the world through its root, which is not the private one.
    """
    life, held = socket.socketpair()
    init = os.fork()
    if init == 0:
        try:
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            held.close()
            life.recv(1)
        finally:
            os._exit(0)
    life.close()
    return init, held.detach()


def mount_memory(target: str, size: int, files: int, mode: str = "700") -> None:
    """A file system in memory over the folder `target`, of at most that many bytes and files. Raises `OSError`."""
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("tmpfs", target, "tmpfs", flags, f"size={size},nr_inodes={files},mode={mode}")


def mount_scratch(scratch: str) -> str:
    """A memory file system of limited size over a candidate's folder `scratch`; words for the profile."""
    try:
        mount_memory(scratch, SCRATCH_BYTES, SCRATCH_FILES)
    except OSError:
        return "folder"
    return f"tmpfs {SCRATCH_BYTES >> 20} MiB"


def mount_proc(target: str = "/proc") -> str:
    """A /proc that shows this process's namespace only; to be called inside it. Words for the profile.

    Read-only: the machine's settings in it know a root without any privilege for root.
    """
    flags = syscalls.MS_RDONLY | syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    try:
        syscalls.mount("proc", target, "proc", flags)
    except OSError:  # a container that masks parts of /proc forbids a fresh one
        return "shared"
    return "private"
