"""Nothing a child sends misleads the judge, it runs only when it may, and nothing of it outlives its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suite.errors import InfraError
from suite.judge.child import FORGIVEN
from suite.judge.zygote import Child, ChildFailed, Zygote
from suite.types import Status
from tests.judge.children import (
    IN_PLACE,
    Stand,
    alive,
    cpp,
    eventually,
    family,
    keeper_of,
    python,
    scratch_root,
    stand,
)

DOUBLE = cpp("for (int64_t i = 0; i < n; i++) y[i] = factor * x[i]; return 0;")
SLEEPER = python("import time\n" + IN_PLACE + "    time.sleep(1000)")
BUSY = python(
    "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()\n"
    + IN_PLACE
    + "    y.copy_(x)"
)


@pytest.fixture(scope="module")
def shared(fresh_cache: Callable[[], Path]) -> Iterator[Stand]:
    with stand(fresh_cache(), Zygote((0, 1))) as made:
        yield made


# ---------------------------------------------------------------------------------------------- forgeries

WIRE = "import os, struct, threading, time\nUP = struct.Struct('<4sHHIi512s')\n"
FORGERIES = {
    "early done": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'KDby', 4, 0, 2, 0, b''))",
    "ready again": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'KDby', 1, 0, 1, 0, b''))",
    "empty": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'KDby', 8, 0, 1, 0, b''))",
    "unknown kind": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'KDby', 99, 0, 1, 0, b''))",
    "unknown status": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'KDby', 5, 77, 1, 0, b''))",
    "our failure": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'KDby', 5, 0, 1, 0, b''))",
    "bad magic": WIRE + IN_PLACE + "    os.write(3, UP.pack(b'pick', 4, 0, 1, 0, b''))",
    "short": WIRE + IN_PLACE + "    os.write(3, b'KDby')",
    "long": WIRE + IN_PLACE + "    os.write(3, b'K' * 60000)",
    "in the load": WIRE + "os.write(3, UP.pack(b'KDby', 4, 0, 1, 0, b''))\n" + IN_PLACE + "    pass",
    "closed channel": WIRE + IN_PLACE + "    os.close(3); time.sleep(1000)",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_message_is_a_policy_failure(shared: Stand, name: str) -> None:
    failed, _ = shared.ending(python(FORGERIES[name]))
    assert failed.status == Status.POLICY


def test_done_before_it_is_done_gains_no_time_to_finish(shared: Stand) -> None:
    shared.fill()
    early = "    os.write(3, UP.pack(b'KDby', 4, 0, 1, 0, b''))\n    time.sleep(0.05)\n    y.fill_(1)"
    with shared.ready(python(WIRE + IN_PLACE + early)) as child:
        child.call(20)
        time.sleep(0.2)
        assert shared.output()[0] != 1.0
        with pytest.raises(ChildFailed, match="POLICY"):
            for _ in range(2):
                child.call(20)
                child.thaw()
                time.sleep(0.2)


# The process takes no signal while its first thread waits for the second, as after vfork.
BEHIND_THE_ANSWER = """
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
static float* target;
alignas(64) static char stack[1 << 16];
static int finish(void*) {
    char answer[528] = "KDby";
    answer[4] = 4, answer[8] = 1;
    send(3, answer, sizeof answer, 0);
    timespec used;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_nsec < 50000000);
    target[0] = 1;
    return 0;
}
"""


def test_work_behind_the_answer_is_paid_for(shared: Stand) -> None:
    flags = "CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK"
    body = f"target = y; return clone(finish, stack + sizeof stack, {flags}, nullptr) < 0;"
    shared.fill()
    with shared.ready(cpp(body, before=BEHIND_THE_ANSWER)) as child:
        seconds = child.call(20)
        assert shared.output()[0] != 1.0 or seconds >= 0.049


def test_a_waiting_message_is_seen(shared: Stand) -> None:
    twice = "    threading.Timer(0.05, lambda: os.write(3, UP.pack(b'KDby', 4, 0, 2, 0, b''))).start()"
    with shared.ready(python(WIRE + IN_PLACE + twice)) as child:
        child.call(20)
        assert not child.pending()
        child.thaw()
        assert eventually(child.pending)
        with pytest.raises(ChildFailed, match="nobody had asked for"):
            child.call(20)


def test_an_unread_channel_does_not_make_the_judge_wait(shared: Stand) -> None:
    never_reads = """
    import fcntl
    number = 1
    while True:
        os.write(3, UP.pack(b'KDby', 4, 0, number, 0, b''))
        while struct.unpack('i', fcntl.ioctl(3, 0x541B, bytes(4)))[0] < 8 * number: time.sleep(0)
        number += 1
"""
    unread = python(WIRE + IN_PLACE + never_reads)
    with shared.ready(unread) as child, pytest.raises(ChildFailed, match="does not read"):
        for _ in range(10_000):
            child.call(20)


def test_no_message_in_advance_passes_for_an_answer(shared: Stand) -> None:
    for kind in (1, 2, 3, 4, 5, 8):
        advance = (
            f"os.write(3, UP.pack(b'KDby', 2, 0, 0, 0, b''))\nos.write(3, UP.pack(b'KDby', {kind}, 0, 0, 0, b''))\n"
        )
        failed, _ = shared.ending(python(WIRE + advance + IN_PLACE + "    pass"))
        assert failed.status == Status.POLICY


def test_after_its_end_every_question_has_the_same_answer(shared: Stand) -> None:
    with shared.ready(python("import os\n" + IN_PLACE + "    os._exit(3)")) as child:
        for ask in (lambda: child.call(20), child.freeze, child.thaw, child.cpu_s, child.empty_call):
            with pytest.raises(ChildFailed, match="exited with code 3"):
                ask()


# ---------------------------------------------------------------------------------------------- stopping


def states(child: Child) -> set[str]:
    folder = Path(f"/proc/{child.pid}/task")
    return {(task / "stat").read_text().rpartition(") ")[2][0] for task in folder.iterdir()}


def test_after_a_call_every_thread_is_stopped(shared: Stand) -> None:
    with shared.ready(BUSY) as child:
        child.call(20)
        assert states(child) == {"T"}
        used = child.cpu_s()
        time.sleep(0.1)
        assert child.cpu_s() == used
        child.thaw()
        assert eventually(lambda: child.cpu_s() > used)
        child.freeze()
        assert states(child) == {"T"}


def test_freezing_twice_is_freezing_once(shared: Stand) -> None:
    with shared.ready(python(IN_PLACE + "    pass")) as child:
        child.freeze()
        child.freeze()
        time.sleep(0.01)
        assert states(child) == {"T"}
        child.thaw()
        assert child.call(20) > 0


def test_running_while_stopped_again_and_again_is_a_policy_failure(shared: Stand) -> None:
    def run_while_stopped(child: Child) -> None:
        used = child.cpu_s()
        os.kill(child.pid, signal.SIGCONT)
        assert eventually(lambda: child.cpu_s() > used + 0.01)
        os.kill(child.pid, signal.SIGSTOP)

    with shared.ready(BUSY) as child:
        child.call(20)
        for _ in range(FORGIVEN):
            run_while_stopped(child)
            child.call(20)
        run_while_stopped(child)
        with pytest.raises(ChildFailed, match="it ran while it was stopped"):
            child.call(20)


# ---------------------------------------------------------------------------------------------- output


def test_printing_megabytes_neither_kills_nor_fills(shared: Stand) -> None:
    source = "import os\n" + IN_PLACE + "    for _ in range(99): print('x' * 100_000)\n    y.copy_(x)"
    log = shared.printed(python(source))
    assert log.startswith("xxx")
    assert len(log) < (64 << 10) + 100
    assert log.endswith("[cut: more than 64 KiB]")


def test_cpp_prints_into_the_same_log(shared: Stand) -> None:
    chatter = 'for (int i = 0; i < 300000; i++) printf("%d\\n", i); fflush(stdout); return 0;'
    log = shared.printed(cpp(chatter, "#include <cstdio>"))
    assert log.startswith("0\n1\n2\n")
    assert len(log) < (64 << 10) + 100


def test_the_log_has_the_whole_traceback(shared: Stand) -> None:
    failed, log = shared.ending(python(IN_PLACE + "    raise ValueError('seven')"))
    assert "Traceback" in log
    assert failed.detail.startswith("ValueError: seven")


# ---------------------------------------------------------------------------------------------- death


def test_kill_may_be_called_again_and_deletes_the_scratch(shared: Stand) -> None:
    with shared.child(python("import os\nprint('hello', flush=True)\n" + IN_PLACE + "    pass")) as child:
        child.load(20)
        pid = shared.zygote.pid
        assert pid is not None
        assert [name for name in os.listdir(scratch_root(pid)) if name.startswith("candidate-")]
        assert child.kill() == child.kill() == "hello\n"
        assert os.listdir(scratch_root(pid)) == ["stderr"]


def test_a_dead_keeper_is_our_failure_and_leaves_no_candidate(shared: Stand) -> None:
    with shared.ready(SLEEPER) as child:
        os.kill(keeper_of(child), signal.SIGKILL)
        with pytest.raises(InfraError):
            child.call(20)
        child.kill()
        assert not alive(child.pid)
    with shared.ready(DOUBLE) as child:
        child.call(20)


@pytest.mark.slow
def test_a_dead_zygote_is_our_failure_and_the_next_spawn_works(tmp_path: Path) -> None:
    with stand(tmp_path, Zygote((0, 1))) as own:
        with own.ready(SLEEPER) as child:
            first = own.zygote.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            with pytest.raises(InfraError):
                child.call(20)
            child.kill()
            assert not alive(child.pid)
        with own.ready(DOUBLE) as child:
            child.call(20)
        assert own.zygote.pid != first


@pytest.mark.slow
def test_a_zygote_clears_away_what_dead_ones_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long_ago = (time.time() - 3600,) * 2
    for name in ("derby-zygote-dead", "derby-zygote-young", "derby-other"):
        (tmp_path / name / "candidate").mkdir(parents=True)
        (tmp_path / name / "stderr").touch()
        if name != "derby-zygote-young":
            os.utime(tmp_path / name, long_ago)
    with Zygote((0, 1)) as first:
        assert first.pid is not None
        folder = Path(scratch_root(first.pid))
        os.utime(folder, long_ago)
        with Zygote((0, 1)):
            assert {path.name for path in tmp_path.iterdir()} > {folder.name, "derby-zygote-young", "derby-other"}
            assert not (tmp_path / "derby-zygote-dead").exists()


JUDGE = """
import sys, time
from pathlib import Path
from suite.judge.zygote import Zygote
from tests.judge.children import stand, IN_PLACE, python
burn = "import threading\\ndef spin():\\n    while True: pass\\nthreading.Thread(target=spin, daemon=True).start()\\n"
with stand(Path(sys.argv[1]), Zygote((0, 1))) as own:
    burner, idler = python(burn + IN_PLACE + "    pass"), python(IN_PLACE + "    pass")
    with own.ready(burner) as running, own.ready(idler) as stopped:
        stopped.freeze()
        print(own.zygote.pid, running.pid, stopped.pid, flush=True)
        time.sleep(1000)
"""


@pytest.mark.slow
def test_a_killed_judge_leaves_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", JUDGE, tmp_path], cwd=root, stdout=subprocess.PIPE, text=True
    ) as judge:
        assert judge.stdout is not None
        zygote, *candidates = [int(pid) for pid in judge.stdout.readline().split()]
        folder, everyone = Path(scratch_root(zygote)), family(zygote)
        assert everyone >= {zygote, *candidates}
        judge.kill()
    assert eventually(lambda: not any(alive(pid) for pid in everyone))
    assert eventually(lambda: not folder.exists())
