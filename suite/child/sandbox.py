"""The walls around code that nobody trusts: each layer is tried, and named in the profile if it stands.

Order matters: namespaces first (they need a single thread), then private mounts, limits, capabilities, landlock and
last seccomp, which refuses most of what the layers before it need. No foreign code runs before the last one.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from walls import landlock, seccomp, syscalls

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/etc/ld.so.cache", "/dev/urandom", "/dev/random")
DEVICES = ("/sys/devices/system/cpu", "/sys/devices/system/node", "/dev/null", "/dev/zero")
SHARED_PROC = ("/proc/self", "/proc/thread-self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems")
FILE_BYTES = 64 << 20
DESCRIPTORS = 256


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
    if not seccomp.enforce(seccomp.program(machine, os.getpid(), processes)):
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
