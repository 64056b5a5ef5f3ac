"""The walls around code that nobody trusts: each layer is tried, and named in the profile if it stands.

Order matters: namespaces first (they need a single thread), then private mounts, limits, capabilities, landlock and
last seccomp, which refuses most of what the layers before it need. No foreign code runs before the last one.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import resource
import signal
import struct
import sys
from pathlib import Path

import landlock
import seccomp
import syscalls

FLAGS = {
    "user": syscalls.CLONE_NEWUSER,
    "pid": syscalls.CLONE_NEWPID,
    "net": syscalls.CLONE_NEWNET,
    "mnt": syscalls.CLONE_NEWNS,
    "ipc": syscalls.CLONE_NEWIPC,
}
KINDS = ("user+pid+net+mnt+ipc", "pid+net+mnt+ipc")
"""With a user namespace of one's own, which needs no privilege; or, as root, without."""
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/etc/ld.so.cache", "/dev/urandom", "/dev/random")
DEVICES = ("/sys/devices/system/cpu", "/sys/devices/system/node", "/dev/null", "/dev/zero")
SHARED_PROC = ("/proc/self", "/proc/thread-self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems")
SCRATCH_BYTES, SCRATCH_FILES = 256 << 20, 4096
FILE_BYTES = 64 << 20
DESCRIPTORS = 256


def find_namespaces() -> str:
    """The best kind of namespaces this process may enter, tried in a fork: one of `KINDS`, or "none".

    Some systems grant a user namespace and then refuse to map the user into it, so the way is gone to its end.
    """
    for kind in KINDS:
        trial = os.fork()
        if trial == 0:
            try:
                enter_namespaces(kind)
            except OSError:
                os._exit(1)
            os._exit(0)
        if os.waitpid(trial, 0)[1] == 0:
            return kind
    return "none"


def enter_namespaces(kind: str) -> None:
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


def limit(memory_bytes: int, file_bytes: int = FILE_BYTES) -> str:
    """Resource limits; `memory_bytes` is address space beyond what is mapped now. Words for the profile."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = {
        resource.RLIMIT_AS: mapped + memory_bytes,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: DESCRIPTORS,
    }
    for which, value in limits.items():
        _, most = resource.getrlimit(which)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(which, (value, value))
    # Past RLIMIT_FSIZE a write then fails instead of killing the writer.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    return f"{memory_bytes / 2**30:g} GiB, files {file_bytes >> 20} MiB"


def close(read: list[str], write: list[str], processes: bool, without: frozenset[str]) -> dict[str, str]:
    """The last layers, for this process and all it becomes: capabilities, landlock, seccomp. Words for the profile.

    `read` comes on top of the system's own libraries. `processes`: may run programs (a compiler does).
    """
    syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    profile = {"landlock": "none", "seccomp": "none"}
    if "landlock" not in without:
        profile["landlock"] = landlock.restrict([*SYSTEM, *DEVICES, *read], [*write, "/dev/null"], processes)
    if "seccomp" not in without:
        profile["seccomp"] = _filter_system_calls(processes)
    return profile


def _filter_system_calls(processes: bool) -> str:
    """Put the filter in force for this process; returns words for the profile. The caller has set no_new_privs."""
    machine = os.uname().machine
    if machine not in seccomp.MACHINES:
        return "none"
    code = seccomp.program(machine, os.getpid(), processes)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    try:
        # Without SPEC_ALLOW older kernels would slow the candidate down by a speculation barrier.
        syscalls.syscall(
            seccomp.MACHINES[machine][2], seccomp.SET_MODE_FILTER, seccomp.SPEC_ALLOW, ctypes.c_char_p(filter_program)
        )
    except OSError:
        return "none"
    return "processes allowed" if processes else "threads only"


def python_folders() -> list[str]:
    """What the interpreter and its packages are read from."""
    return [sys.prefix, sys.base_prefix, sys.exec_prefix]


def proc_paths(proc: str) -> list[str]:
    """What of /proc may be read, given what `mount_proc` said."""
    return ["/proc"] if proc == "private" else list(SHARED_PROC)


def in_words(profile: dict[str, str]) -> str:
    """The profile as the one line in which it travels."""
    return ";".join(f"{layer}={words}" for layer, words in sorted(profile.items()))
