"""Candidates for the scaled addition, right and wrong ones."""

from __future__ import annotations

from suite.task import baseline
from suite.types import Candidate, Language, SourceFile, Spec, Task

CPP = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
static void add(const float* x, const float* y, float alpha, float* out, float* total, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f;
        for (int64_t i = r * 256; i < (r + 1) * 256; ++i) sum += out[i] = alpha * x[i] + y[i];
        total[r] = sum;
    }
}
extern "C" int run(const float* x, const float* y, float alpha, float* out, float* total, int64_t rows) {
    BODY
    return 0;
}
"""
PYTHON = """
import torch

def run(x, y, alpha, out, total):
    torch.add(y, x, alpha=alpha, out=out)
    torch.sum(out, 1, out=total)
"""
RETURNING = """
def run(x, y, alpha):
    out = alpha * x + y
    return out, out.sum(1)
"""
ADD = "add(x, y, alpha, out, total, rows);"


def cpp(body: str) -> Candidate:
    """A kernel whose `run` has this body; ADD is the right one."""
    return Candidate(
        spec=Spec(language=Language.CPP, entry_point="kernel.cpp::run"),
        sources=(SourceFile(path="kernel.cpp", content=CPP.replace("BODY", body)),),
    )


def python(source: str, *, in_place: bool = True) -> Candidate:
    return Candidate(
        spec=Spec(language=Language.PYTHON, entry_point="kernel.py::run", destination_passing_style=in_place),
        sources=(SourceFile(path="kernel.py", content=source),),
    )


def expert(task: Task) -> Candidate:
    """The baseline as a candidate."""
    return baseline(task)
