"""Namespaces of one's own: tried, entered, and furnished with a private /proc and a scratch folder in memory."""

from __future__ import annotations

import functools
import operator
import os
from pathlib import Path

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


def find() -> str:
    """The best kind of namespaces this process may enter, tried in a fork: one of `KINDS`, or "none".

    Some systems grant a user namespace and then refuse to map the user into it, so the way is gone to its end.
    """
    for kind in KINDS:
        trial = os.fork()
        if trial == 0:
            try:
                enter(kind)
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
            Path("/proc/self", name).write_text(text)
    syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)


def mount_scratch(scratch: str) -> str:
    """A memory file system of limited size over the folder `scratch`; words for the profile."""
    options = f"size={SCRATCH_BYTES},nr_inodes={SCRATCH_FILES},mode=700"
    try:
        syscalls.mount("tmpfs", scratch, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
    except OSError:
        return "folder"
    return f"tmpfs {SCRATCH_BYTES >> 20} MiB"


def mount_proc() -> str:
    """A /proc that shows this process's namespace only; to be called inside it. Words for the profile."""
    try:
        syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    except OSError:  # a container that masks parts of /proc forbids a fresh one
        return "shared"
    return "private"
