"""A time counts only if it is one; hopeless candidates are given up by a rule; timing holds what its plan says."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from suite.judge.judge import Judge
from suite.judge.plan import TINY, TimingPlan
from suite.judge.timing import Quad, hopeless
from suite.types import Job, Measurement, Split, Status, Task, Tier
from tests.judge.kernels import ADD, cpp

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


Timed = Callable[[TimingPlan, str], tuple[Measurement, ...]]


@pytest.fixture
def timed(judge: Judge, task: Task, monkeypatch: pytest.MonkeyPatch) -> Timed:
    """Measurements of the search workloads under another plan, by the one judge."""

    def run(plan: TimingPlan, body: str) -> tuple[Measurement, ...]:
        monkeypatch.setattr(judge, "settings", judge.settings.model_copy(update={"search": plan}))
        verdict = judge.evaluate(Job(task=task, candidate=cpp(body), tier=Tier.SEARCH))
        assert verdict.status == Status.PASSED, verdict.failure
        return tuple(one for one in verdict.measurements if one.workload.split == Split.SEARCH)

    return run


def test_the_least_number_of_quads_is_taken_however_long_it_lasts(timed: Timed) -> None:
    plan = TimingPlan(launches=1, seconds=1e-6, min_quads=5, empty_calls=20)
    assert [len(one.launches[0].baseline_us) for one in timed(plan, ADD)] == [10, 10]


@pytest.mark.slow
def test_a_hopeless_candidate_still_passes_with_what_was_measured(timed: Timed) -> None:
    plan = TimingPlan(launches=1, seconds=60.0, min_quads=2, empty_calls=20, hopeless_below=0.5)
    repeat = f'for (int i = 0; i < 100; ++i) {{ {ADD} asm volatile("" ::: "memory"); }}'
    assert [len(one.launches[0].candidate_us) for one in timed(plan, repeat)] == [4, 4]


def test_every_call_can_be_held_against_the_reference(timed: Timed) -> None:
    plan = TINY.model_copy(update={"reference_share": 1.0})
    for one in timed(plan, ADD):
        assert one.correctness is not None
        assert one.correctness.referenced == len(one.launches[0].candidate_us)
