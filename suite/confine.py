"""The walls around a method: what of the kernel's means are put up, in which order, and in words for the record.

It sees code to read, a scratch folder to write and one TCP port to connect to, has processes of its own that end with
it, and has a tenth of another's claim to cpu time. Where the system refuses namespaces (a container without
privileges), landlock and a stricter filter of system calls stand alone; the record says so.

What is left to a hostile method: to burn the time and the caches of cores on which a judge times (eight spinning
processes did not slow the baseline, but every verdict is then marked busy), to keep its door busy, to reach another
machine at its door's port number, and memory up to the machine's limit, where it is the first to be killed. On a weak
host also: as much disk as there is, and an orphan that outlives a keeper that was killed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from suite.walls import cgroup, landlock, method_filter, mounts, namespaces, priority, seccomp, syscalls

KINDS = ("user+pid+mnt+ipc", "pid+mnt+ipc")
"""Namespaces, best first. The network is the machine's: the gateway is on loopback."""
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/sys/devices/system/cpu")
ETC = (
    "ld.so.cache alternatives ssl/certs ssl/openssl.cnf ca-certificates pki/tls/certs pki/ca-trust python3 "
    "passwd group nsswitch.conf hosts host.conf resolv.conf gai.conf services protocols localtime timezone mime.types "
    "magic os-release"
)
"""Of /etc what programs look up, and nothing that is secret."""
PROC = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems")
"""Of a /proc that shows all processes only this one and the machine: another's environment holds another's token."""
WRITABLE_DEVICES = ("/dev/null", "/dev/full")
SCRATCH_BYTES, SCRATCH_FILES = 2 << 30, 200_000
LAYERS = dict.fromkeys(("namespaces", "landlock", "seccomp", "cpu", "tasks"), "none")
LAYERS |= {"proc": "shared", "scratch": "a folder without a limit"}
"""What is said of each wall that does not stand."""
TASKS = 1024
"""Most processes and threads of a method."""


@dataclass(frozen=True)
class Ground:
    """What the keeper has laid for a method's process: its namespaces ("none" or one of `KINDS`) and control groups."""

    kind: str
    light: Path | None
    tasks: Path | None
    without: frozenset[str]


def lay(scratch: Path, without: frozenset[str] = frozenset()) -> Ground:
    """Enter the best namespaces there are, for this process's children; `scratch` is an empty folder.

    `without` leaves walls out (namespaces, cgroups, landlock, seccomp), to see what the remaining ones hold.
    """
    cgroup.sweep()
    keeper = os.getpid()
    kind = "none" if "namespaces" in without else namespaces.find(KINDS, partial(_room_in, scratch))
    if kind == "none":
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    else:
        namespaces.enter(kind)
    if "cgroups" in without:
        return Ground(kind, None, None, without)
    return Ground(kind, cgroup.make_light(keeper), cgroup.make(keeper, TASKS), without)


def _room_in(scratch: Path) -> None:
    mounts.enter(_room([], scratch))


def _room(read: list[str], scratch: Path) -> mounts.Room:
    return mounts.Room((*_system(), *read), str(scratch), SCRATCH_BYTES, SCRATCH_FILES)


def _system() -> tuple[str, ...]:
    return (*SYSTEM, *(f"/etc/{name}" for name in ETC.split()))


def close(ground: Ground, read: list[str], scratch: Path, port: int) -> dict[str, str]:
    """Close the walls around this process, which has one thread, and all it starts, for good. Words for the profile.

    It may read and execute beneath `read` and in the system, change beneath `scratch`, and connect to `port`. Raises
    `OSError` if a wall that was found possible can not be built.
    """
    apart = ground.kind != "none"
    profile = {"namespaces": ground.kind, "tasks": cgroup.enter(ground.tasks, 0)}
    profile["cpu"], sessions = priority.give_way(ground.light)
    _limit(ground.kind)
    visible, written = [*_system(), *mounts.DEVICES, *PROC, *read], [str(scratch), *WRITABLE_DEVICES]
    if apart:
        syscalls.unshare(syscalls.CLONE_NEWNS)  # the keeper keeps its own view
        profile["proc"] = mounts.enter(_room(read, scratch))
        profile["scratch"] = f"tmpfs {SCRATCH_BYTES >> 20} MiB"
        if profile["proc"] == "private":  # then nothing is left to see but what is meant to be seen
            visible = ["/"]
        written.append(mounts.SHARED_MEMORY)
    syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # or its own part of /proc would belong to root
    if "landlock" not in ground.without:
        profile["landlock"] = landlock.restrict([*visible, str(scratch)], written, execute=True, port=port)
    if "seccomp" not in ground.without:
        profile["seccomp"] = _filter(apart=apart and landlock.version() >= 6, sessions=sessions)
    return {layer: profile.get(layer, default) for layer, default in LAYERS.items()}


def _filter(*, apart: bool, sessions: bool) -> str:
    machine = os.uname().machine
    if machine not in seccomp.MACHINES:
        return "none"
    if not seccomp.enforce(method_filter.program(machine, apart=apart, sessions=sessions)):
        return "none"
    return "own processes and sockets" if apart else "no local sockets, no modes of files"


def _limit(kind: str) -> None:
    with suppress(OSError):
        syscalls.write("/proc/self/oom_score_adj", "1000")  # where memory runs out, this goes first
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (SCRATCH_BYTES, SCRATCH_BYTES))
    if kind.startswith("user"):  # then what else the user runs does not count
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        tasks = TASKS if most == resource.RLIM_INFINITY else min(TASKS, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))


def die_with(parent: int, signal_number: int) -> None:
    """Have the kernel send us the signal when our parent, the process `parent`, dies; at once if it is dead already."""
    syscalls.die_with_parent(signal_number)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal_number)


def profile() -> str:
    """In words for the record: what protects the rest of the machine from a method. Tried out, in a process apart."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    command = [sys.executable, "-P", "-m", "suite.confine"]
    tried = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return tried.stdout.strip() or f"none: {tried.stderr.strip()[-300:]}"


def main() -> None:
    """Put up all the walls around a fork that has nothing to do, which prints what stands."""
    with tempfile.TemporaryDirectory(prefix="derby-walls-") as folder:
        ground = lay(Path(folder), frozenset(sys.argv[1:]))
        fork = os.fork()
        if fork == 0:
            words = close(ground, [], Path(folder), 0)
            sys.stdout.write("; ".join(f"{layer}: {text}" for layer, text in words.items()))
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(fork, 0)
        cgroup.remove(os.getpid())


if __name__ == "__main__":
    main()
