"""A root of one's own: a bare file system in memory that shows chosen folders, read-only, and nothing else.

What is not shown has no path, so neither a socket nor a mode, a time or an attribute of it can be touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from . import namespaces, syscalls

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LINKS = {f"/dev/{name}": f"/proc/self/{at}" for name, at in (("fd", "fd"), ("stdout", "fd/1"), ("stderr", "fd/2"))}
SHARED_MEMORY, SHARED_BYTES = "/dev/shm", 256 << 20
ROOT_BYTES, ROOT_FILES = 1 << 20, 16384
"""The bare root holds mount points only."""


@dataclass(frozen=True)
class Room:
    """What a private root is made of: paths to read, and one folder to write with room for so many bytes and files."""

    read: tuple[str, ...]
    scratch: str
    size: int
    files: int


def enter(room: Room) -> str:
    """Make the root of this process's own mount namespace anew; words for the profile. Raises `OSError`.

    The process needs every capability in its namespaces and ends in the scratch folder, which is empty.
    """
    root = room.scratch  # a folder like any other, hidden by the new root until that is in place
    namespaces.mount_memory(root, ROOT_BYTES, ROOT_FILES, "755")
    for path in outermost([*room.read, *DEVICES]):
        _show(path, root + path)
    for path, target in LINKS.items():
        os.symlink(target, root + path)
    for folder, size in ((SHARED_MEMORY, SHARED_BYTES), (room.scratch, room.size)):
        os.makedirs(root + folder, exist_ok=True)
        namespaces.mount_memory(root + folder, size, room.files)
    os.makedirs(root + "/proc", exist_ok=True)
    proc = namespaces.mount_proc(root + "/proc")
    if proc == "shared":
        _show("/proc", root + "/proc")
    syscalls.make_read_only(root, recursive=False)
    _change_root(root)
    os.chdir(room.scratch)
    return proc


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that exist, as they are named and where they lead, without those that lie beneath another of them."""
    there = [os.path.normpath(path) for path in paths if os.path.exists(path)]
    found = {*there, *map(os.path.realpath, there)}
    return sorted(path for path in found if not any(parent in found for parent in _parents(path)))


def _parents(path: str) -> Iterable[str]:
    while path != (parent := os.path.dirname(path)):
        yield parent
        path = parent


def _show(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    syscalls.mount(source, target, None, syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.make_read_only(target, recursive=True)


def _change_root(root: str) -> None:
    os.chdir(root)
    syscalls.pivot_root(".", ".")  # the old root now lies over the new one
    syscalls.unmount(".")
    os.chdir("/")
