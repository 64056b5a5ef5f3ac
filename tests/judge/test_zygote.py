"""A child computes what it is asked to, every way of failing has a name, and nothing it sends misleads the judge."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.errors import InfraError
from suite.judge.zygote import Argument, Child, ChildFailed, Zygote
from suite.types import DType, Status
from tests.judge.children import (
    ARGUMENTS,
    COUNT,
    IN_PLACE,
    RETURNING,
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
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with stand(tmp_path_factory.mktemp("cache"), Zygote((0, 1))) as made:
        yield made


def fill(stand: Stand) -> None:
    os.pwrite(stand.input_fd, struct.pack(f"{COUNT}f", *range(COUNT)), 0)
    os.pwrite(stand.output_fd, b"\xff" * 4 * COUNT, 0)


def output(stand: Stand) -> tuple[float, ...]:
    return struct.unpack(f"{COUNT}f", os.pread(stand.output_fd, 4 * COUNT, 0))


TRIPLED = tuple(3.0 * number for number in range(COUNT))


@pytest.mark.parametrize(
    "candidate",
    [
        DOUBLE,
        cpp("#pragma omp parallel for\nfor (int64_t i = 0; i < n; i++) y[i] = factor * x[i];\nreturn 0;"),
        python("import torch\n" + IN_PLACE + "    torch.mul(x, factor, out=y)"),
        python(RETURNING + "    return x * factor", destination=False),
        python(RETURNING + "    return (x * factor,)", destination=False),
    ],
    ids=["cpp", "openmp", "in place", "returning", "returning a tuple"],
)
def test_a_kernel_computes_from_the_judges_memory_into_the_judges_memory(shared: Stand, candidate: object) -> None:
    fill(shared)
    with shared.ready(candidate) as child:  # type: ignore[arg-type]
        assert child.call(20) > 0
        assert output(shared) == TRIPLED
        fill(shared)
        child.call(20)
        assert output(shared) == TRIPLED


def test_inputs_may_change_between_calls_and_are_read_anew(shared: Stand) -> None:
    fill(shared)
    with shared.ready(DOUBLE) as child:
        child.call(20)
        os.pwrite(shared.input_fd, struct.pack("f", 7.0), 0)
        child.call(20)
        assert output(shared)[0] == 21.0


def test_an_empty_call_does_not_call_the_kernel(shared: Stand) -> None:
    fill(shared)
    before = output(shared)
    with shared.ready(DOUBLE) as child:
        assert child.empty_call() > 0
    assert str(output(shared)) == str(before)


def test_empty_tensors_reach_a_kernel(shared: Stand) -> None:
    arguments = (
        Argument("x", DType.FLOAT32, (0, 4), "input"),
        ARGUMENTS[1],
        Argument("y", DType.FLOAT32, (0,), "output"),
    )
    candidate = python(IN_PLACE + "    assert x.shape == (0, 4) and y.shape == (0,)")
    with shared.child(candidate) as child:
        child.load(20)
        child.configure(arguments)
        child.call(20)


def test_a_child_without_memory_can_be_loaded(shared: Stand) -> None:
    with shared.child(DOUBLE, input_bytes=0, output_bytes=0, input_fd=-1, output_fd=-1) as child:
        child.load(20)
        assert child.empty_call() > 0


def test_candidates_have_the_threads_they_were_given(shared: Stand) -> None:
    source = "import os, torch\n" + IN_PLACE + "    print(torch.get_num_threads(), os.environ['OMP_NUM_THREADS'])"
    assert shared.printed(python(source)) == "2 2\n"


def test_the_zygote_stays_single_threaded(shared: Stand) -> None:
    pid = shared.zygote.pid
    assert pid is not None
    assert len(os.listdir(f"/proc/{pid}/task")) == 1


def test_openmp_threads_are_bound_each_to_its_cpu(shared: Stand) -> None:
    ask = """
    #pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < 2; i++) {
        cpu_set_t set;
        sched_getaffinity(0, sizeof set, &set);
        #pragma omp ordered
        printf("%d%d\\n", CPU_ISSET(0, &set), CPU_ISSET(1, &set));
    }
    fflush(stdout);
    return 0;"""
    assert shared.printed(cpp(ask, "#include <cstdio>\n#include <sched.h>")) == "10\n01\n"


# ---------------------------------------------------------------------------------------------- endings

PYTHON_ENDINGS = {
    "raises": (
        IN_PLACE + "    raise ValueError('seven')",
        Status.RUNTIME_ERROR,
        "ValueError: seven (kernel.py, line 2)",
    ),
    "raises at import": ("1 / 0", Status.RUNTIME_ERROR, "ZeroDivisionError: division by zero (kernel.py, line 1)"),
    "syntax": ("def run(:", Status.COMPILE_ERROR, "SyntaxError"),
    "no function": ("walk = 1", Status.COMPILE_ERROR, "kernel.py defines no function run"),
    "sys.exit": ("import sys\n" + IN_PLACE + "    sys.exit(0)", Status.RUNTIME_ERROR, "called sys.exit(0)"),
    "os._exit": ("import os\n" + IN_PLACE + "    os._exit(0)", Status.RUNTIME_ERROR, "exited with code 0 before"),
    "exit at import": ("import os\nos._exit(7)", Status.RUNTIME_ERROR, "exited with code 7 before"),
    "signal": (
        "import os, signal\n" + IN_PLACE + "    os.kill(os.getpid(), signal.SIGTERM)",
        Status.RUNTIME_ERROR,
        "killed by SIGTERM",
    ),
    "memory": (IN_PLACE + "    bytearray(20 << 30)", Status.RUNTIME_ERROR, "MemoryError"),
    "torch memory": ("import torch\n" + IN_PLACE + "    torch.empty(1 << 36)", Status.RUNTIME_ERROR, "RuntimeError"),
    "writes an input": (IN_PLACE + "    x.fill_(1)", Status.RUNTIME_ERROR, "killed by SIGSEGV"),
    "odd text": (IN_PLACE + "    raise ValueError('\\x1b[2J\\n\\0\\ud800' * 999)", Status.RUNTIME_ERROR, "ValueError"),
    "recursion": (IN_PLACE + "    run(x, factor, y)", Status.RUNTIME_ERROR, "RecursionError"),
}


@pytest.mark.parametrize("name", PYTHON_ENDINGS)
def test_a_python_failure_is_named(shared: Stand, name: str) -> None:
    source, status, words = PYTHON_ENDINGS[name]
    failed, _ = shared.ending(python(source))
    assert failed.status == status
    assert words in failed.detail
    assert failed.detail.isprintable()


RETURNED = {
    "nothing": ("None", Status.RUNTIME_ERROR, "returned nothing for y"),
    "too many": ("x, x", Status.INCORRECT_SHAPE, "returned 2 values instead of 1"),
    "shape": ("x[1:]", Status.INCORRECT_SHAPE, "y is (999,) instead of (1000,)"),
    "broadcast": ("x[:1]", Status.INCORRECT_SHAPE, "y is (1,)"),
    "dtype": ("x.double()", Status.INCORRECT_DTYPE, "y is torch.float64 instead of torch.float32"),
    "type": ("3", Status.INCORRECT_DTYPE, "y is a int, not a torch.Tensor"),
    "subclass": ("torch.nn.Parameter(x.clone())", Status.INCORRECT_DTYPE, "y is a Parameter, not a torch.Tensor"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_a_wrong_return_is_named(shared: Stand, name: str) -> None:
    expression, status, words = RETURNED[name]
    source = f"import torch\n{RETURNING}    return {expression}"
    failed, _ = shared.ending(python(source, destination=False))
    assert (failed.status, words in failed.detail) == (status, True), failed


CPP_ENDINGS = {
    "code": ("return 3;", "", Status.RUNTIME_ERROR, "returned 3 instead of 0"),
    "exit": ("exit(0);", "", Status.RUNTIME_ERROR, "exited with code 0 before"),
    "abort": ("abort();", "", Status.RUNTIME_ERROR, "killed by SIGABRT"),
    "crash": ("*(volatile int*)8 = 1; return 0;", "", Status.RUNTIME_ERROR, "killed by SIGSEGV"),
    "throws": ("throw 1;", "", Status.RUNTIME_ERROR, "killed by SIGABRT"),
    "memory": (
        "std::vector<char> v(20LL << 30); y[0] = v[n]; return 0;",
        "#include <vector>",
        Status.RUNTIME_ERROR,
        "killed by SIGABRT, out of memory (std::bad_alloc)",
    ),
    "constructor": (
        "return 0;",
        "struct A { A() { _Exit(5); } } a;",
        Status.RUNTIME_ERROR,
        "exited with code 5 before",
    ),
}


@pytest.mark.parametrize("name", CPP_ENDINGS)
def test_a_cpp_failure_is_named(shared: Stand, name: str) -> None:
    body, before, status, words = CPP_ENDINGS[name]
    failed, _ = shared.ending(cpp(body, before))
    assert (failed.status, words in failed.detail) == (status, True), failed


def test_a_missing_symbol_is_named(shared: Stand) -> None:
    failed, _ = shared.ending(cpp("return 0;", symbol="walk"))
    assert failed.status == Status.COMPILE_ERROR
    assert "no symbol walk" in failed.detail


@pytest.mark.parametrize("source", ["while True: pass", "import time\ntime.sleep(1000)"])
def test_an_endless_load_times_out(shared: Stand, source: str) -> None:
    with shared.child(python(source)) as child, pytest.raises(ChildFailed, match="TIMEOUT: loading it took longer"):
        child.load(0.2)


def test_an_endless_call_times_out_and_dies(shared: Stand) -> None:
    with shared.ready(cpp("for (;;) y[0] = n; return 0;")) as child:
        with pytest.raises(ChildFailed, match="TIMEOUT"):
            child.call(0.2)
        child.kill()
        assert not alive(child.pid)


def test_a_child_that_stops_itself_times_out(shared: Stand) -> None:
    source = "import os, signal\n" + IN_PLACE + "    os.kill(os.getpid(), signal.SIGSTOP)"
    failed, _ = shared.ending(python(source), call_s=0.3)
    assert failed.status == Status.TIMEOUT


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
    fill(shared)
    early = "    os.write(3, UP.pack(b'KDby', 4, 0, 1, 0, b''))\n    time.sleep(0.05)\n    y.fill_(1)"
    with shared.ready(python(WIRE + IN_PLACE + early)) as child:
        child.call(20)
        time.sleep(0.2)
        assert output(shared)[0] != 1.0
        with pytest.raises(ChildFailed, match="POLICY"):
            for _ in range(2):
                child.call(20)
                child.thaw()
                time.sleep(0.2)


def test_a_waiting_message_is_seen(shared: Stand) -> None:
    twice = "    threading.Timer(0.05, lambda: os.write(3, UP.pack(b'KDby', 4, 0, 2, 0, b''))).start()"
    with shared.ready(python(WIRE + IN_PLACE + twice)) as child:
        child.call(20)
        assert not child.pending()
        child.thaw()
        assert eventually(child.pending)
        with pytest.raises(ChildFailed, match="nobody had asked for"):
            child.call(20)


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


def test_running_while_stopped_is_noticed(shared: Stand) -> None:
    with shared.ready(BUSY) as child:
        child.call(20)
        used = child.cpu_s()
        os.kill(child.pid, signal.SIGCONT)
        assert eventually(lambda: child.cpu_s() > used + 0.01)
        os.kill(child.pid, signal.SIGSTOP)
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
