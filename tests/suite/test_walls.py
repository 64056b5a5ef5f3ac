"""What a hostile method tries fails, with all walls and without namespaces; what a good one needs works."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from suite import confine
from suite.scripted import ScriptedModel
from suite.types import Budget
from suite.walls import landlock, priority
from tests.suite.intruder import HABITS
from tests.suite.test_gateway import open_house
from tests.suite.test_host import WEAK, finish, start, told

pytestmark = pytest.mark.skipif(landlock.version() < 6, reason="landlock is older here, and keeps less out")
INTRUDER = "tests.suite.intruder"
SUITE = Path(confine.__file__).resolve().parent
CODE = repr(str(SUITE / "host.py"))

SESSION = "a session with a claim of its own"
ATTEMPTS = {
    # A verdict could be forged by slowing the baseline or its judge.
    "signal": "os.kill(victim, 0)",
    "signal to all": "os.kill(-1, 0) if os.kill(victim, 0) is None else 0",
    "pidfd": "number(424, 424, number(434, 434, victim, 0), 0, None, 0)",
    "its cores": "os.sched_setaffinity(victim, {0})",
    "its class": "os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0))",
    "its priority": "os.setpriority(os.PRIO_PROCESS, victim, 19)",
    "priority of all": "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
    "priority of its group": "os.setpriority(os.PRIO_PGRP, victim, 19)",
    "its disk priority": "number(251, 30, 1, victim, 3 << 13)",
    "its limits": "resource.prlimit(victim, resource.RLIMIT_CPU, (1, 1))",
    "its memory": "open(f'/proc/{victim}/mem', 'rb')",
    "ptrace": "number(101, 117, 16, victim, 0, 0)",
    "reading its memory": "number(310, 270, victim, None, 0, None, 0, 0)",
    "its descriptors": "number(438, 438, number(434, 434, os.getpid(), 0), 0, 0)",
    "its namespaces": "open(f'/proc/{victim}/ns/net')",
    # Raising one's own claim.
    "a higher priority": "os.setpriority(os.PRIO_PROCESS, 0, 0)",
    "real time": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "an ordinary class": "os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))",
    SESSION: "session()",
    "its limit of priority": "resource.setrlimit(resource.RLIMIT_NICE, (40, 40))",
    "its session's claim": "open('/proc/self/autogroup', 'w')",
    "another control group": "open('/sys/fs/cgroup/cgroup.procs', 'w')",
    "a v1 control group": "open('/sys/fs/cgroup/cpu/cgroup.procs', 'w')",
    # Files of the same user.
    "reading a file": "open(file).read()",
    "mode": "os.chmod(file, 0)",
    "time": "os.utime(file, (0, 0))",
    "owner": "os.chown(file, -1, -1)",
    "attribute": "os.setxattr(file, 'user.derby', b'x')",
    "removal": "os.remove(file)",
    "mode of the suite": f"os.chmod({CODE}, 0o644)",
    "mode of the suite, opened": f"os.fchmod(os.open({CODE}, os.O_RDONLY), 0o644)",
    "time of the suite": f"os.utime({CODE})",
    "owner of the suite": f"os.chown({CODE}, -1, -1)",
    "writing the suite": f"open({CODE}, 'a')",
    "writing packages": "open(os.__file__, 'a')",
    "the file through init": "open(f'/proc/1/root{file}').read()",
    "the file through its parent": "open(f'/proc/{os.getppid() or 1}/cwd/secret').read()",
    "temporary files": f"os.listdir({str(SUITE.parent / 'runs')!r})",
    "shadow": "open('/etc/shadow')",
    "environment of init": "open('/proc/1/environ').read()",
    "init's leash": "open('/proc/1/fd/0', 'w')",
    "a device": "os.mknod('device', 0o20666, os.makedev(1, 1))",
    "a terminal": "open('/dev/tty')",
    "a sysctl": "open('/proc/sys/kernel/core_pattern', 'w')",
    "who is killed first": "open('/proc/self/oom_score_adj', 'w')",
    "a huge file": f"grow({confine.SCRATCH_BYTES + (1 << 20)})",
    # Sockets of others: Ray's, a database's.
    "a local socket": "connect(address)",
    "an abstract socket": "connect(chr(0) + os.path.basename(address))",
    "a local datagram": "datagram(address + '.dgram')",
    "another port": "tcp(port)",
    "another port, mptcp": "mptcp(port)",
    "another port, fast open": "fast_open(port)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "sctp": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "a server": "socket.create_server(('127.0.0.1', 0))",
    # The machine.
    "new namespaces": "number(272, 97, 0x10000000)",
    "a process in new namespaces": "number(56, 220, 0x10000011, 0, 0, 0, 0)",
    "mount": "number(165, 40, b'none', b'/usr', b'tmpfs', 0, None)",
    "remount": "number(165, 40, None, b'/', None, 0x1020, None)",
    "unmount": "number(166, 39, b'/proc', 2)",
    "perf": "number(298, 241, None, 0, -1, -1, 0)",
    "bpf": "number(321, 280, 0, None, 0)",
    "userfaultfd": "number(323, 282, 0)",
    "io_uring": "number(425, 425, 1, None)",
    "keys": "number(250, 219, 0, 0, 0)",
    "system v memory": "number(29, 194, 0, 4096, 0o1600)",
    "writing out all files": "number(162, 81)",
    "the clock": "__import__('time').clock_settime(0, 0)",
    "thread bomb": f"bomb({confine.TASKS + 10})",
}


@dataclass(frozen=True)
class Target:
    """What is to be kept from a method: a process, a file, a listening TCP port, local sockets."""

    process: subprocess.Popen[bytes]
    file: Path
    port: int
    address: str
    taps: tuple[socket.socket, ...]

    def state(self) -> tuple[object, ...]:
        """All that an attempt might have changed."""
        pid, stat = self.process.pid, self.file.stat()
        return (
            os.sched_getaffinity(pid),
            os.sched_getscheduler(pid),
            os.getpriority(os.PRIO_PROCESS, pid),
            os.getpriority(os.PRIO_PROCESS, 0),
            resource.prlimit(pid, resource.RLIMIT_CPU),
            (stat.st_mode, stat.st_mtime, stat.st_uid, self.file.read_text(), os.listxattr(self.file)),
            (SUITE / "host.py").stat().st_mtime,
        )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("target")
    file = folder / "secret"
    file.write_text("seed")
    address = str(folder / "socket")
    taps = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    taps.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    for tap, name in zip(taps, (address, "\0socket", f"{address}.dgram"), strict=True):
        tap.bind(name)
    taps[0].listen()
    taps[1].listen()
    taps.append(socket.create_server(("127.0.0.1", 0)))
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]) as process:
        yield Target(process, file, taps[3].getsockname()[1], address, tuple(taps))
        process.kill()
    for tap in taps:
        tap.close()


def outcomes(folder: Path, target: Target, without: frozenset[str]) -> dict[str, str]:
    options: dict[str, JsonValue] = {
        "attempts": dict(ATTEMPTS),
        "victim": target.process.pid,
        "file": str(target.file),
        "port": target.port,
        "address": target.address,
    }
    with open_house(folder, ScriptedModel(["// a reply"]), Budget(evaluations=3)) as house:
        process = start(house, f"{INTRUDER}:Intruder", without, **options)
        assert finish(process) == 0, process.tail()
        lines = (folder / "method.log").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line)


@pytest.mark.parametrize("without", [frozenset(), WEAK], ids=["all walls", "weak host"])
def test_what_a_hostile_method_tries_is_refused(tmp_path: Path, target: Target, without: frozenset[str]) -> None:
    before = target.state()
    came = outcomes(tmp_path, target, without)
    # Without a control group the machine's own limit on tasks holds; with one a session gains nothing.
    compete = without and priority.sessions_compete()
    waived = {"thread bomb"} if compete else {"thread bomb", SESSION} if without else {SESSION}
    assert {name: came[name] for name in ATTEMPTS if not came[name].startswith("refused") and name not in waived} == {}
    assert target.state() == before
    target.taps[3].setblocking(False)
    with pytest.raises(BlockingIOError):
        target.taps[3].accept()


@pytest.mark.slow
def test_landlock_is_not_needed_for_what_is_out_of_sight(tmp_path: Path, target: Target) -> None:
    came = outcomes(tmp_path, target, frozenset({"landlock"}))
    let = {name for name in ATTEMPTS if not came[name].startswith("refused")}
    assert let <= {"an abstract socket", "another port", "a server", SESSION}
    assert (target.process.poll(), target.file.read_text()) == (None, "seed")


EXPECTED = {
    "fork": "30 {200}",
    "spawn": "30 {200}",
    "forkserver": "30 {200}",
    "asyncio": "[200, 200, 200] 7",
    "shared memory": "b'ab'",
    "manager": "2",
    "files": "abdb",
    "program": "0",
    "group": "0",
    "limits": "(0, 0)",
    "threads": "50",
}


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose name leaves room for the name of a socket in it (108 bytes in all)."""
    with tempfile.TemporaryDirectory(prefix="walls-") as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("without", [frozenset(), WEAK], ids=["all walls", "weak host"])
def test_what_a_good_method_does_works(short_path: Path, without: frozenset[str]) -> None:
    # Without a /dev/shm of its own it has no semaphores, and so no pools of processes.
    habits = ["asyncio", "group", "limits", "threads"] if without else list(HABITS)
    with open_house(short_path, ScriptedModel(["// a reply"]), Budget(evaluations=3)) as house:
        process = start(house, f"{INTRUDER}:Diligent", without, habits=json.loads(json.dumps(habits)))
        assert finish(process) == 0, process.tail()
        assert {name: told(process)[name] for name in habits} == {name: EXPECTED[name] for name in habits}


def test_the_profile_says_what_stands() -> None:
    words = dict(layer.split(": ", 1) for layer in confine.profile().split("; "))
    assert list(words) == list(confine.LAYERS)
    assert words["landlock"].startswith("abi ") and words["namespaces"] in (*confine.KINDS, "none")
    assert (words["scratch"] == confine.LAYERS["scratch"]) == (words["namespaces"] == "none")
