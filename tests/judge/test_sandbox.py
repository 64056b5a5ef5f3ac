"""What a candidate may not do fails in its process, whatever it tries; what an honest one needs works."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suite.errors import InfraError
from suite.judge.zygote import ChildFailed, Zygote
from tests.judge.children import (
    ARGUMENTS,
    IN_PLACE,
    Stand,
    alive,
    cpp,
    eventually,
    family,
    python,
    scratch_root,
    stand,
)

ROOT = Path(__file__).parents[2]
TRIALS = """
import ctypes, mmap, os, signal, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)

def number(which, *arguments):
    result = libc.syscall(which, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), 'syscall')

def trial(name, attempt):
    try:
        print(f'{name}: {attempt()!r}'[:2000].replace(chr(10), ' '))
    except BaseException as error:
        print(f'{name}: refused {type(error).__name__}')

def free_thread():
    done = []
    thread = threading.Thread(target=lambda: done.append(1))
    thread.start()
    thread.join()
    return done

def lazy_torch():
    import torch.distributions, torch.optim, torch.onnx, torch.distributed.tensor
    return torch.linalg.inv(torch.eye(300)).shape

def write(path):
    with open(path, 'w') as file:
        file.write('x')
    return os.path.exists(path)

def bomb():
    made = 0
    for made in range(10000):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    return made

x86 = os.uname().machine == 'x86_64'
"""
FORBIDDEN = {
    "shadow": "open('/etc/shadow').read()",
    "passwd": "open('/etc/passwd').read()",
    "the judge's source": f"open({str(ROOT / 'suite/judge/zygote.py')!r}).read()",
    "our own source": f"open({str(ROOT / 'suite/child/worker.py')!r}).read()",
    "tasks": f"os.listdir({str(ROOT / 'tasks')!r})",
    "the root folder": "os.listdir('/')",
    "temporary files": "os.listdir('/tmp')",
    "another's environment": "open('/proc/1/environ').read()",
    "memory of init": "open('/proc/1/mem', 'r+b')",
    "writing to /tmp": "write('/tmp/derby-stray')",
    "writing to the interpreter": "write(sys.prefix + '/stray.py')",
    "writing its own source": "write(__file__)",
    "deleting its own source": "os.remove(__file__)",
    "a new device": "os.mknod('device', 0o20666, os.makedev(1, 1))",
    "sysctl": "write('/proc/sys/kernel/core_pattern')",
    "tcp": "socket.create_connection(('127.0.0.1', 22), 1)",
    "a unix socket": "socket.socket(socket.AF_UNIX)",
    "fork": "os.fork()",
    "a program": "subprocess.run(['/bin/true'])",
    "a shell": "os.popen('id').read() or 1 / 0",
    "exec": "os.execv('/bin/true', ['true'])",
    "a signal to its parent": "os.kill(1, 9)",
    "a signal to all": "os.kill(-1, 9)",
    "a memfd": "os.memfd_create('more')",
    "a pidfd": "os.pidfd_open(os.getpid())",
    "unshare": "call('unshare', 0x10000000)",
    "mount": "call('mount', b'none', b'/usr', b'tmpfs', 0, None)",
    "ptrace": "call('ptrace', 0, 0, 0, 0)",
    "surviving its parent": "call('prctl', 1, 0, 0, 0, 0)",
    "a timer that wakes it up": "number(222 if x86 else 107, 1, None, ctypes.byref(ctypes.c_int()))",
    "a descriptor that wakes it up": "__import__('fcntl').fcntl(3, 10, 18)",
    "timers that expire while it is stopped": "number(283 if x86 else 85, 1, 0)",
    "writing out all files": "number(162 if x86 else 81)",
    "the idle class": "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))",
    "a lower priority": "os.setpriority(os.PRIO_USER, 0, 19)",
    "perf": "number(298 if x86 else 241, None, 0, -1, -1, 0)",
    "more memory": "__import__('resource').setrlimit(9, (1 << 40, 1 << 40))",
    "another's limits": "__import__('resource').prlimit(1, 9)",
    "the clock": "__import__('time').clock_settime(0, 0)",
    "a huge file": "open('huge', 'wb').truncate(1 << 30)",
    "filling the disk": "[open(f'{i}', 'wb').write(bytes(60 << 20)) for i in range(9)]",
    "thread bomb": "bomb()",
    "a core dump": "__import__('resource').setrlimit(4, (1, 1))",
}
ALLOWED = {
    "a thread": ("free_thread()", r"\[1\]"),
    "its scratch": ("write(os.environ['TMPDIR'] + '/mine')", "True"),
    "its working folder": ("write('mine')", "True"),
    "its own source": ("len(open(__file__).read()) > 0", "True"),
    "modules of torch": ("lazy_torch()", r"torch.Size\(\[300, 300\]\)"),
    "modules of python": ("__import__('sqlite3').__name__", "'sqlite3'"),
    "its processors": ("len(os.sched_getaffinity(0)) > 0 and bool(os.listdir('/sys/devices/system/cpu'))", "True"),
    "randomness": ("len(os.urandom(4) + open('/dev/urandom', 'rb').read(4))", "8"),
    "a signal to itself": ("os.kill(os.getpid(), 0)", "None"),
}
SEEN = {
    "environment": "sorted(os.environ)",
    "descriptors": "sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd))",
    "processes": "sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit())",
    "arguments": "sys.argv",
    "capabilities": "[line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')]",
}


@pytest.fixture(scope="module")
def shared(fresh_cache: Callable[[], Path]) -> Iterator[Stand]:
    os.environ["DERBY_TEST_SECRET"] = "secret"
    with stand(fresh_cache(), Zygote((0, 1))) as made:
        yield made
    del os.environ["DERBY_TEST_SECRET"]


@pytest.fixture(scope="module")
def outcomes(shared: Stand) -> dict[str, str]:
    """What became of every attempt, all made by one candidate."""
    attempts = {**SEEN, **{name: code for name, (code, _) in ALLOWED.items()}, **FORBIDDEN}
    lines = [f"trial({name!r}, lambda: {code})" for name, code in attempts.items()]
    log = shared.printed(python(TRIALS + "\n".join(lines) + "\n" + IN_PLACE + "    pass"))
    return dict(line.split(": ", 1) for line in log.splitlines())


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_forbidden_is_refused(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name].startswith("refused "), outcomes[name]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_an_honest_kernel_needs_works(outcomes: dict[str, str], name: str) -> None:
    assert re.fullmatch(ALLOWED[name][1], outcomes[name])


def test_nothing_of_the_judges_is_inherited(outcomes: dict[str, str]) -> None:
    assert "SECRET" not in outcomes["environment"]
    assert outcomes["descriptors"] == "[0, 1, 2, 3]"
    assert outcomes["processes"] == "[1, 2]"
    assert outcomes["arguments"] == "['candidate']"
    assert set(outcomes["capabilities"]) <= set("[]', 0")


def test_the_profile_names_every_layer(shared: Stand) -> None:
    with shared.child(cpp("return 0;")) as child:
        names = {"namespaces", "landlock", "seccomp", "pids", "memory", "scratch", "proc"}
        assert set(child.sandbox) == names
        assert child.sandbox["seccomp"] == "threads only"
        assert child.sandbox["namespaces"].endswith("pid+net+mnt+ipc")


def test_no_code_of_the_candidate_runs_before_the_sandbox_is_closed(shared: Stand) -> None:
    constructor = (
        'struct A { A() { FILE* f = fopen("/etc/passwd", "r"); puts(f ? "open" : "closed"); fflush(stdout); } } a;'
    )
    assert shared.printed(cpp("return 0;", f"#include <cstdio>\n{constructor}")) == "closed\n"


def test_an_input_cannot_be_written_by_any_mapping(shared: Stand) -> None:
    os.pwrite(shared.input_fd, struct.pack("f", 5.0), 0)
    source = """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
def run(x, factor, y):
    page = ctypes.c_void_p(x.data_ptr() & ~4095)
    print(libc.mprotect(page, 4096, 3))
    try:
        open('/proc/self/mem', 'r+b')
    except OSError:
        print('refused')
"""
    log = shared.printed(python(source))
    assert log.endswith("refused\n")
    assert struct.unpack("f", os.pread(shared.input_fd, 4, 0)) == (5.0,)


# ---------------------------------------------------------------------------------------------- weaker profiles

DAEMONS = (
    "import os, time\n"
    "for _ in range(20):\n"
    "    if os.fork() == 0:\n"
    "        os.setsid()\n"
    "        if os.fork() == 0:\n"
    "            while True: time.sleep(0.01)\n"
    "        os._exit(0)\n"
    "print('forked', flush=True)\n" + IN_PLACE + "    pass"
)
BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"


@pytest.mark.slow
@pytest.mark.parametrize("without", [{"seccomp"}, {"seccomp", "namespaces"}, {"seccomp", "namespaces", "cgroup"}])
def test_daemons_are_dead_when_kill_returns(tmp_path: Path, without: set[str]) -> None:
    with stand(tmp_path, Zygote((0, 1), without=frozenset(without))) as own, own.child(python(DAEMONS)) as child:
        pid = own.zygote.pid
        assert pid is not None
        child.load(20)
        assert len(family(pid)) > 20
        assert child.kill().startswith("forked")
        assert family(pid) <= {pid}
        assert os.listdir(scratch_root(pid)) == ["stderr"]


@pytest.mark.slow
@pytest.mark.parametrize("without", [{"seccomp"}, {"seccomp", "namespaces"}])
def test_a_fork_bomb_is_dead_when_kill_returns(tmp_path: Path, without: set[str]) -> None:
    with stand(tmp_path, Zygote((0, 1), without=frozenset(without))) as own, own.child(python(BOMB)) as child:
        pid = own.zygote.pid
        assert pid is not None
        if child.sandbox["pids"] == "none":
            pytest.skip("no control group can be made here to cap the bomb")
        with pytest.raises(ChildFailed, match="TIMEOUT"):
            child.load(0.5)
        assert len(family(pid)) > 20
        child.kill()
        assert family(pid) <= {pid}


@pytest.mark.slow
def test_without_namespaces_the_other_layers_hold(tmp_path: Path) -> None:
    source = f"{TRIALS}\ntrial('shadow', lambda: open('/etc/shadow').read())\ntrial('fork', os.fork)\n"
    source += "trial('processes', lambda: os.listdir('/proc'))\ntrial('signal', lambda: os.kill(os.getppid(), 9))\n"
    source += "trial('scratch', lambda: [write('mine'), os.makedirs('/'.join('d' * 300)), os.mkdir('locked', 0)])\n"
    with stand(tmp_path, Zygote((0, 1), without=frozenset({"namespaces"}))) as own:
        with own.ready(python(source + IN_PLACE + "    y.copy_(x)")) as child:
            assert (child.sandbox["namespaces"], child.sandbox["scratch"]) == ("none", "folder")
            child.call(20)
            lines = child.kill().splitlines()
        assert [line.split()[1] for line in lines[:4]] == ["refused"] * 4
        assert lines[4].startswith("scratch: [True")
        assert own.zygote.pid is not None
        assert os.listdir(scratch_root(own.zygote.pid)) == ["stderr"]


def test_control_groups_go_with_their_candidates(shared: Stand) -> None:
    with shared.child(cpp("return 0;")) as child:
        if child.sandbox["pids"] == "none":
            pytest.skip("no control group can be made here")
        line = next(line for line in Path(f"/proc/{child.pid}/cgroup").read_text().splitlines() if "derby-" in line)
        group = next(path for path in Path("/sys/fs/cgroup").rglob(Path(line.split(":", 2)[2]).name))
    assert eventually(lambda: not group.exists())


@pytest.mark.slow
def test_a_zygote_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="the zygote does not start"), Zygote((4000,)):
        pass


@pytest.mark.slow
def test_a_stopped_candidate_dies_with_its_zygote(tmp_path: Path) -> None:
    with stand(tmp_path, Zygote((0, 1))) as own:
        child = own.zygote.spawn(own.order(python(IN_PLACE + "    pass")))
        child.load(20)
        child.configure(ARGUMENTS)
        child.call(20)
    assert eventually(lambda: not alive(child.pid))
    child.kill()
