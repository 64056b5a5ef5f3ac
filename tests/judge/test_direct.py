"""Trusted kernels called in this process compute what they should, whichever way they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from suite.errors import InfraError
from suite.judge.build import Builder
from suite.judge.course import Course
from suite.judge.direct import load_kernel
from suite.types import Candidate, Task
from tests.judge.kernels import ADD, PYTHON, RETURNING, cpp, expert, python


@pytest.fixture(scope="module")
def builder(fresh_cache: Callable[[], Path]) -> Builder:
    return Builder(fresh_cache())


@pytest.mark.parametrize("candidate", [cpp(ADD), python(PYTHON), python(RETURNING, in_place=False)])
def test_any_kind_of_kernel_gives_named_outputs(task: Task, builder: Builder, candidate: Candidate) -> None:
    course, workload = Course(task), task.workloads[0]
    inputs = course.make(workload, np.random.default_rng(0), "normal")
    got = load_kernel(task.definition, candidate, builder)(inputs, workload.axes)
    assert tuple(got) == tuple(task.definition.outputs)
    assert course.compare(got, course.truth(inputs)).ok


def test_what_a_kernel_does_not_write_is_nan(task: Task, builder: Builder) -> None:
    course, workload = Course(task), task.workloads[0]
    inputs = course.make(workload, np.random.default_rng(0), "normal")
    got = load_kernel(task.definition, cpp(""), builder)(inputs, workload.axes)
    assert all(bool(torch.isnan(value).all()) for value in got.values())


def test_a_kernel_that_does_not_build_or_says_it_failed_is_our_failure(task: Task, builder: Builder) -> None:
    with pytest.raises(InfraError, match="does not build"):
        load_kernel(task.definition, cpp("}"), builder)
    inputs = Course(task).make(task.workloads[0], np.random.default_rng(0), "normal")
    with pytest.raises(InfraError, match="returned 3"):
        load_kernel(task.definition, cpp("return 3;"), builder)(inputs, task.workloads[0].axes)


def test_the_baseline_loads(task: Task, builder: Builder) -> None:
    assert callable(load_kernel(task.definition, expert(task), builder))
