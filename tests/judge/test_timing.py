"""A time counts only if it is one; hopeless candidates are given up by a rule; timing holds what its plan says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from suite.judge.judge import Judge
from suite.judge.plan import TINY, JudgeSettings, TimingPlan
from suite.judge.timing import Quad, hopeless
from suite.types import Job, Launch, Split, Status, Task, Tier
from tests.judge.kernels import ADD, cpp, expert

BOUNDED = TINY.model_copy(update={"hopeless_below": 0.5, "min_quads": 3})
SLOW = Quad(candidate=(3.0, 3.0), baseline=(1.0, 1.0))
EVEN = Quad(candidate=(1.0, 1.0), baseline=(1.0, 1.0))


@pytest.mark.parametrize("odd", [0.0, -1e-6, math.nan, math.inf])
def test_a_quad_with_anything_but_four_times_does_not_count(odd: float) -> None:
    assert EVEN.counts
    assert not Quad(candidate=(1.0, odd), baseline=(1.0, 1.0)).counts
    assert not Quad(candidate=(1.0, 1.0), baseline=(odd, 1.0)).counts


def test_a_candidate_is_hopeless_after_the_least_number_of_quads() -> None:
    assert not hopeless([SLOW] * 2, BOUNDED, out_of_time=False)
    assert hopeless([SLOW] * 3, BOUNDED, out_of_time=False)


def test_out_of_time_two_quads_are_enough_to_give_up() -> None:
    assert not hopeless([SLOW], BOUNDED, out_of_time=True)
    assert hopeless([SLOW] * 2, BOUNDED, out_of_time=True)


def test_one_quick_call_or_one_slow_baseline_keeps_hope() -> None:
    quick = Quad(candidate=(3.0, 1.9), baseline=(1.0, 1.0))
    unsure = Quad(candidate=(3.0, 3.0), baseline=(1.0, 1.6))
    assert not hopeless([SLOW, SLOW, quick], BOUNDED, out_of_time=False)
    assert not hopeless([SLOW, SLOW, unsure], BOUNDED, out_of_time=False)


def test_nobody_is_hopeless_without_a_bound() -> None:
    assert not hopeless([SLOW] * 9, BOUNDED.model_copy(update={"hopeless_below": None}), out_of_time=True)


@contextmanager
def timed(judge: Judge, task: Task, plan: TimingPlan, body: str) -> Iterator[list[Launch]]:
    """Launches of the search workloads under another plan, by a judge that shares the first one's builds."""
    with Judge(JudgeSettings(cpus=judge.settings.cpus, cache=judge.settings.cache, search=plan)) as other:
        verdict = other.evaluate(Job(task=task, candidate=cpp(body), tier=Tier.SEARCH))
    assert verdict.status == Status.PASSED, verdict.failure
    yield [launch for one in verdict.measurements for launch in one.launches if one.workload.split == Split.SEARCH]


def test_the_least_number_of_quads_is_taken_however_long_it_lasts(judge: Judge, task: Task) -> None:
    plan = TimingPlan(launches=1, seconds=1e-6, min_quads=5, empty_calls=3)
    with timed(judge, task, plan, ADD) as launches:
        assert [len(launch.baseline_us) for launch in launches] == [10, 10]


def test_a_hopeless_candidate_still_passes_with_what_was_measured(judge: Judge, task: Task) -> None:
    plan = TimingPlan(launches=1, seconds=60.0, min_quads=2, empty_calls=3, hopeless_below=0.5)
    repeat = f'for (int i = 0; i < 200; ++i) {{ {ADD} asm volatile("" ::: "memory"); }}'
    with timed(judge, task, plan, repeat) as launches:
        assert [len(launch.candidate_us) for launch in launches] == [4, 4]


def test_every_call_can_be_held_against_the_reference(judge: Judge, task: Task) -> None:
    plan = TINY.model_copy(update={"reference_share": 1.0})
    with Judge(JudgeSettings(cpus=judge.settings.cpus, cache=judge.settings.cache, search=plan)) as other:
        verdict = other.evaluate(Job(task=task, candidate=expert(task), tier=Tier.SEARCH))
    for one in verdict.measurements:
        if one.launches and one.correctness:
            assert one.correctness.referenced == len(one.launches[0].candidate_us)
