"""Untimed calls, outputs against the reference: the check split, and the timed shapes with contents of other families.

Contents are always fresh. The timed shapes are known, and are timed with contents of one family. What holds for those
contents alone (moderate logits, a scalar that is always the same) must not be assumed there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from suite.compare import Comparison
from suite.judge.arena import InputArena
from suite.judge.course import Course, Inputs, Outputs
from suite.judge.sides import Rejected, Side, set_scene
from suite.types import Correctness, Measurement, Split, Status, Workload

TIMEOUTS = 3
"""All these calls together may take this many times what one call may take."""
AHEAD = 1
"""Timed workloads whose contents are made before they are needed; more would fill the memory."""


class Tally:
    """The worst of all comparisons of a workload, and how many there were."""

    def __init__(self) -> None:
        self._absolute = self._relative = 0.0
        self._compared = self._referenced = 0

    def add(self, comparison: Comparison, *, referenced: bool) -> None:
        self._absolute = max(self._absolute, comparison.max_absolute_error)
        self._relative = max(self._relative, comparison.max_relative_error)
        self._compared += not referenced
        self._referenced += referenced

    def correctness(self) -> Correctness:
        return Correctness(
            max_absolute_error=self._absolute,
            max_relative_error=self._relative,
            compared=self._compared,
            referenced=self._referenced,
        )


@dataclass(frozen=True)
class Case:
    """One untimed call, with what must come out."""

    workload: Workload
    family: str
    inputs: Inputs
    truth: Outputs


def draw_cases(course: Course, rng: np.random.Generator) -> Iterator[Case]:
    """Every check workload with every family."""
    for workload in course.task.split(Split.CHECK):
        for family in course.families:
            inputs = course.make(workload, rng, family)
            yield Case(workload, family, inputs, course.truth(inputs))


def timed_cases(
    course: Course, rng: np.random.Generator, timed: Sequence[Workload], count: int | None
) -> Iterator[Case]:
    """Timed workloads with the families that are not timed: `count` of them, drawn by lot; None: every one."""
    pairs = [(workload, family) for workload in timed for family in course.families[1:]]
    for index in rng.permutation(len(pairs))[:count]:
        workload, family = pairs[index]
        inputs = course.make(workload, rng, family)
        yield Case(workload, family, inputs, course.truth(inputs))


def check(course: Course, side: Side, arena: InputArena, cases: Iterator[Case]) -> tuple[Measurement, ...]:
    """A measurement without times for each check workload. Raises `Rejected` at the first wrong answer."""
    deadline = time.perf_counter() + TIMEOUTS * course.task.timeout_s
    workloads: dict[str, Workload] = {}
    tallies: dict[str, Tally] = {}
    for case in cases:
        side.take(set_scene(course.task.definition, case.workload, arena, case.inputs))
        side.reset()
        if (left := deadline - time.perf_counter()) <= 0:
            raise Rejected(Status.TIMEOUT, "the untimed calls take too long together")
        side.call(min(left, course.task.timeout_s))
        comparison = course.compare(side.outputs(), case.truth)
        if not comparison.ok:
            detail = wrong(side, comparison)
            raise Rejected(Status.INCORRECT_NUMERICAL, f"{detail} (inputs of the family {case.family!r})")
        if case.workload.split == Split.CHECK:
            workloads[case.workload.uuid] = case.workload
            tallies.setdefault(case.workload.uuid, Tally()).add(comparison, referenced=True)
    return tuple(
        Measurement(workload=workloads[uuid], status=Status.PASSED, correctness=tally.correctness())
        for uuid, tally in tallies.items()
    )


def wrong(side: Side, comparison: Comparison) -> str:
    """Words for a wrong answer: what was never written, then how far off the rest is."""
    return "; ".join(part for part in (side.unwritten(), comparison.detail) if part)
