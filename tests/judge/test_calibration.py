"""Calibration measures in the units of the tolerance, and agrees with the comparison that gives verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch

from suite.compare import LARGEST, compare
from suite.judge.calibration import Usage, measure
from suite.judge.course import Course, Inputs, Outputs
from suite.judge.direct import Kernel
from suite.types import Split, Task


def off_by(task: Task, factor: float, nan: bool = False) -> Kernel:
    """The reference, with `total` moved by a multiple of what it is allowed."""
    course = Course(task)

    def kernel(inputs: Inputs, axes: Mapping[str, int]) -> Outputs:
        outputs = course.truth(inputs)
        outputs["total"] = outputs["total"] + factor * task.tolerance["total"].atol
        if nan:
            outputs["out"][0, 0] = math.nan
        return outputs

    return kernel


def worst(usages: tuple[Usage, ...], implementation: str, output: str) -> float:
    return max(one.elements for one in usages if (one.implementation, one.output) == (implementation, output))


def test_usage_is_in_multiples_of_what_is_allowed(task: Task) -> None:
    kernels = {"right": off_by(task, 0.0), "half": off_by(task, 0.5), "double": off_by(task, 2.0)}
    usages = measure(task, kernels, seeds=1, splits=(Split.CHECK,))
    assert worst(usages, "right", "total") == worst(usages, "half", "out") == 0
    assert worst(usages, "half", "total") == pytest.approx(0.5, rel=1e-3)
    assert worst(usages, "double", "total") == pytest.approx(2.0, rel=1e-3)


def test_a_misplaced_nan_is_the_largest_of_errors(task: Task) -> None:
    usages = measure(task, {"nan": off_by(task, 0.0, nan=True)}, seeds=1, splits=(Split.CHECK,))
    assert worst(usages, "nan", "out") == LARGEST


def test_usage_above_one_is_what_the_comparison_refuses(task: Task) -> None:
    tolerance = task.tolerance["total"]
    want = torch.zeros(4)
    for factor in (0.5, 0.99, 1.01, 7.0):
        got = want + factor * tolerance.atol
        usages = measure(task, {"it": off_by(task, factor)}, seeds=1, splits=(Split.CHECK,))
        assert compare(got, want, tolerance).ok == (worst(usages, "it", "total") <= 1)


def test_check_workloads_see_every_family_and_timed_ones_take_turns(task: Task) -> None:
    families = set(Course(task).families)
    usages = measure(task, {"it": off_by(task, 0.0)}, seeds=1, splits=(Split.CHECK, Split.SEARCH))
    assert {one.family for one in usages if one.split == Split.CHECK} == families
    assert {one.family for one in usages if one.split == Split.SEARCH} == {Course(task).families[0]}
    usages = measure(task, {"it": off_by(task, 0.0)}, seeds=2, splits=(Split.SEARCH,))
    assert {one.family for one in usages} == families
