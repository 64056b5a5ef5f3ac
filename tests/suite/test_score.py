"""Score: raw samples in, speedups and honest intervals out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from suite.score import TRIM, ZERO, Estimate, over_seeds, over_tasks, quads, rates, score, speedup
from suite.types import Evaluation, Launch, Measurement, Split, Status, Tier, Workload


def launch(candidate: list[float], baseline: list[float]) -> Launch:
    return Launch(
        candidate_us=tuple(candidate), baseline_us=tuple(baseline), overhead_us=50.0, foreign_cpu=0.0, seconds=0.1
    )


def measured(
    *launches: Launch, uuid: str = "w", split: Split = Split.SEARCH, status: Status = Status.PASSED
) -> Measurement:
    workload = Workload(uuid=uuid, split=split, axes={"n": 4})
    return Measurement(workload=workload, status=status, launches=launches, bytes_moved=4_000_000, flops=2_000_000)


def evaluation(*measurements: Measurement, status: Status = Status.PASSED) -> Evaluation:
    return Evaluation(
        candidate="c",
        definition="d",
        task_digest="t",
        tier=Tier.SEARCH,
        lane="cpu",
        device="test",
        timing_protocol="cpu-1",
        status=status,
        measurements=measurements,
    )


def noisy(ratio: float, spread: float, seed: int, n: int = 20) -> Launch:
    dice = np.random.default_rng(seed)
    candidate = 100.0 * np.exp(dice.normal(0, spread, n))
    return launch(list(candidate), list(100.0 * ratio * np.exp(dice.normal(0, spread, n))))


def test_a_candidate_twice_as_fast_scores_two() -> None:
    assert speedup(measured(launch([50.0] * 8, [100.0] * 8))).value == pytest.approx(2.0)


def test_linear_drift_cancels_within_a_quad() -> None:
    # A B B A with every call 10 % slower than the one before: the same program must come out at exactly 1.
    drifting = launch([1.0, 1.1**3], [1.1, 1.1**2])
    assert quads(drifting) == pytest.approx([0.0])


def test_one_preempted_call_does_not_move_the_score() -> None:
    calm = [100.0] * 20
    assert speedup(measured(launch([*calm[:-1], 5000.0], calm))).value == pytest.approx(1.0)


def test_the_score_is_the_geometric_mean_over_workloads() -> None:
    halves = measured(launch([200.0] * 8, [100.0] * 8), uuid="slow")
    doubles = measured(launch([25.0] * 8, [100.0] * 8), uuid="fast")
    assert score(evaluation(halves, doubles)).value == pytest.approx(math.sqrt(0.5 * 4))


def test_only_the_asked_split_counts() -> None:
    search = measured(launch([50.0] * 8, [100.0] * 8))
    heldout = measured(launch([100.0] * 8, [100.0] * 8), split=Split.HELDOUT)
    assert score(evaluation(search, heldout), Split.HELDOUT).value == pytest.approx(1.0)


def test_one_failed_workload_makes_the_evaluation_zero() -> None:
    good = measured(launch([50.0] * 8, [100.0] * 8))
    wrong = measured(uuid="wrong", status=Status.INCORRECT_NUMERICAL)
    assert score(evaluation(good, wrong, status=Status.INCORRECT_NUMERICAL)) == ZERO
    assert score(evaluation(good, wrong)) == ZERO, "a status that contradicts its parts must not score either"


def test_an_evaluation_without_timed_workloads_scores_zero() -> None:
    assert score(evaluation()) == ZERO


def test_with_three_launches_the_interval_is_over_launches() -> None:
    one = speedup(measured(*(noisy(1.0, 0.01, seed) for seed in range(2))))
    many = speedup(measured(*(noisy(1.0, 0.01, seed) for seed in range(6))))
    assert (one.over, many.over, many.n) == ("quads", "launches", 6)


def test_launches_that_differ_widen_the_interval_though_their_calls_agree() -> None:
    steady = speedup(measured(*(noisy(1.0, 0.001, seed) for seed in range(4))))
    jumpy = speedup(measured(*(noisy(ratio, 0.001, 1) for ratio in (0.9, 1.0, 1.05, 1.1))))
    assert jumpy.half_width and steady.half_width and jumpy.half_width > 10 * steady.half_width


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    hits = 0
    for seed in range(300):
        dice = np.random.default_rng(seed)
        levels = np.exp(dice.normal(0, 0.04, 6))
        estimate = speedup(measured(*(noisy(float(level), 0.02, seed * 10 + i) for i, level in enumerate(levels))))
        assert estimate.low is not None and estimate.high is not None
        hits += estimate.low <= 1.0 <= estimate.high
    assert 0.91 <= hits / 300 <= 0.985


def test_fewer_than_three_quads_give_no_interval() -> None:
    estimate = speedup(measured(launch([50.0] * 4, [100.0] * 4)))
    assert estimate.value == pytest.approx(2.0) and estimate.low is None and estimate.half_width is None


def test_identical_samples_give_an_interval_of_no_width() -> None:
    estimate = speedup(measured(launch([50.0] * 20, [100.0] * 20)))
    assert estimate.low == pytest.approx(2.0) and estimate.high == pytest.approx(2.0)


def test_seeds_three_or_more_get_an_interval_on_the_logs() -> None:
    estimate = over_seeds([1.0, 2.0, 4.0])
    assert estimate.value == pytest.approx(2.0) and estimate.low is not None and estimate.high is not None
    assert estimate.low * estimate.high == pytest.approx(4.0)


def test_two_seeds_get_none() -> None:
    assert over_seeds([1.0, 4.0]).low is None


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.integers(0, 7))
def test_a_failed_seed_never_raises_a_row(values: list[float], failing: int) -> None:
    failed = [0.0 if place == failing % len(values) else value for place, value in enumerate(values)]
    assert over_seeds(failed).value < over_seeds(values).value
    assert over_seeds([*values, 0.0]).value < over_seeds(values).value


@given(st.lists(st.floats(1.0, 1e5), min_size=4, max_size=4), st.floats(0.1, 10.0))
def test_scaling_both_sides_changes_nothing(samples: list[float], scale: float) -> None:
    plain = speedup(measured(launch(samples[:2], samples[2:])))
    scaled = speedup(measured(launch([s * scale for s in samples[:2]], [s * scale for s in samples[2:]])))
    assert scaled.value == pytest.approx(plain.value)


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=30))
def test_a_launch_is_the_trimmed_mean_of_its_quads(ratios: list[float]) -> None:
    pairs = [ratio for ratio in ratios for _ in range(2)]
    value = speedup(measured(launch([100.0] * len(pairs), [100.0 * ratio for ratio in pairs]))).value
    assert math.log(value) == pytest.approx(stats.trim_mean(np.log(ratios), TRIM), abs=1e-12)


def test_over_one_task_nothing_changes() -> None:
    seeds = over_seeds([1.1, 1.3, 1.2, 1.25])
    over = over_tasks([seeds])
    assert (over.value, over.low, over.high, over.n) == pytest.approx((seeds.value, seeds.low, seeds.high, 4))


def test_over_tasks_it_is_the_geometric_mean_and_doubts_average_out() -> None:
    first, second = over_seeds([1.0, 1.2, 1.1, 0.9]), over_seeds([2.0, 2.4, 2.2, 1.8])
    both = over_tasks([first, second])
    assert both.value == pytest.approx(math.sqrt(first.value * second.value)) and both.n == 8
    assert both.half_width is not None and first.half_width is not None
    assert 0.4 * first.half_width < both.half_width < first.half_width / math.sqrt(2)


def test_intervals_over_tasks_cover_the_truth_about_as_often_as_they_say() -> None:
    dice = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        rows = [over_seeds(list(np.exp(mean + dice.normal(0, 0.1, 5)))) for mean in (0.0, 0.4, -0.2)]
        total = over_tasks(rows)
        assert total.low is not None and total.high is not None
        covered += total.low <= math.exp(0.2 / 3) <= total.high
    assert 0.92 <= covered / 400 <= 0.98


def test_a_failed_task_makes_the_mean_zero_and_few_seeds_leave_no_interval() -> None:
    sound = over_seeds([1.1, 1.2, 1.3])
    assert over_tasks([sound, ZERO]).value == 0 and over_tasks([]).value == 0
    over = over_tasks([sound, Estimate(value=2.0, low=1.9, high=2.1, n=1, over="launches")])
    assert (over.low, over.high) == (None, None) and over.value == pytest.approx(math.sqrt(2 * sound.value))


def test_rates_are_necessary_work_over_median_time() -> None:
    gflops, gbytes = rates(measured(launch([1000.0, 3000.0, 2000.0, 2000.0], [1.0] * 4)))
    assert gflops == pytest.approx(1.0) and gbytes == pytest.approx(2.0)


def test_rates_of_an_untimed_workload_are_unknown() -> None:
    assert rates(measured()) == (None, None)
