"""A child computes what it is asked to, and every way of failing has a name."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suite.judge.zygote import Argument, ChildFailed, Zygote
from suite.types import DType, Status
from tests.judge.children import (
    ARGUMENTS,
    COUNT,
    IN_PLACE,
    RETURNING,
    Stand,
    alive,
    cpp,
    python,
    stand,
)

DOUBLE = cpp("for (int64_t i = 0; i < n; i++) y[i] = factor * x[i]; return 0;")


@pytest.fixture(scope="module")
def shared(fresh_cache: Callable[[], Path]) -> Iterator[Stand]:
    with stand(fresh_cache(), Zygote((0, 1))) as made:
        yield made


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
    shared.fill()
    with shared.ready(candidate) as child:  # type: ignore[arg-type]
        assert child.call(20) > 0
        assert shared.output() == TRIPLED
        shared.fill()
        child.call(20)
        assert shared.output() == TRIPLED


def test_inputs_may_change_between_calls_and_are_read_anew(shared: Stand) -> None:
    shared.fill()
    with shared.ready(DOUBLE) as child:
        child.call(20)
        os.pwrite(shared.input_fd, struct.pack("f", 7.0), 0)
        child.call(20)
        assert shared.output()[0] == 21.0


def test_an_empty_call_does_not_call_the_kernel(shared: Stand) -> None:
    shared.fill()
    before = shared.output()
    with shared.ready(DOUBLE) as child:
        assert child.empty_call() > 0
    assert str(shared.output()) == str(before)


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
