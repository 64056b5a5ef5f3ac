"""A small made-up task and candidates in it, for tests that need a task but no folder on disk."""

from __future__ import annotations

from suite.types import (
    Axis,
    Baseline,
    Candidate,
    Definition,
    DType,
    HeldoutPlan,
    Language,
    OutputTolerance,
    SourceFile,
    Spec,
    Split,
    Task,
    TensorSpec,
    Workload,
)

CHECK_SIZE = 987_654
"""Appears nowhere but in the check split."""

DEFINITION = Definition(
    name="scaled_rows",
    op_type="elementwise",
    axes={"rows": Axis(type="var", description="how many rows"), "width": Axis(type="const", value=64)},
    inputs={
        "x": TensorSpec(shape=("rows", "width"), dtype=DType.BFLOAT16, description="what is scaled"),
        "index": TensorSpec(shape=("rows",), dtype=DType.INT32),
        "factor": TensorSpec(shape=None, dtype=DType.FLOAT32),
    },
    outputs={"y": TensorSpec(shape=("rows", "width"), dtype=DType.FLOAT32)},
    reference="def run(x, index, factor): return (x[index].float() * factor,)",
    description="y[i] = factor * x[index[i]]",
    constraints=("0 <= index < rows",),
)
TASK = Task(
    definition=DEFINITION,
    title="Rows, gathered and scaled",
    lane="cpu",
    languages=(Language.CPP, Language.PYTHON),
    workloads=(
        Workload(uuid="w-search", split=Split.SEARCH, axes={"rows": 4096}),
        Workload(uuid="w-check", split=Split.CHECK, axes={"rows": CHECK_SIZE}),
    ),
    heldout=HeldoutPlan(count=1, draws={"rows": {"uniform_int": [1, 777_555]}}),
    tolerance={"y": OutputTolerance(rtol=0.0123, atol=0.0456)},
    baseline=Baseline(name="plain", version=1, language=Language.CPP, files=("b.cpp",), entry_point="b.cpp::run"),
    starters={"cpp-plain": ("starter.cpp",)},
    hints="- Rows are contiguous.",
    timeout_s=5.0,
    folder="nowhere",
    digest="d" * 64,
    origin="made up",
    licence="Apache-2.0",
)
STARTER = """\
#include <cstdint>
constexpr int kUnroll = 2;  // tune: unroll in {1, 2, 4}
constexpr bool kStream = false;  // tune: stream in {false, true}
extern "C" int run(const uint16_t* x, const int32_t* index, float factor, float* y, int64_t rows) {
    return 0;
}
"""


def cpp(content: str = STARTER, path: str = "starter.cpp") -> Candidate:
    spec = Spec(language=Language.CPP, entry_point=f"{path}::run")
    return Candidate(spec=spec, sources=(SourceFile(path=path, content=content),))


def python(content: str, *, in_place: bool = True) -> Candidate:
    spec = Spec(language=Language.PYTHON, entry_point="main.py::run", destination_passing_style=in_place)
    return Candidate(spec=spec, sources=(SourceFile(path="main.py", content=content),))
