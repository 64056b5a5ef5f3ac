"""Forecasts beside measurements: every predicted candidate once, failures at the rim, agreement with its n."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leaderboard import calibration
from leaderboard.calibration import Pair
from leaderboard.reading import load
from leaderboard.records import TrialRecord
from suite.types import Prediction, Status
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan

GUESSES = (
    Prediction(speedup=1.0),
    None,
    Prediction(speedup=2.0, value=0.9),
    Prediction(value=0.1),
    Prediction(speedup=0),
)


def trial(runs: Path, plan: Plan) -> TrialRecord:
    canned.write(runs, plan)
    return load(runs)[0]


def pair(predicted: float, measured: float | None) -> Pair:
    return Pair(1, predicted, measured, Status.PASSED if measured else Status.TIMEOUT, "")


def test_only_what_was_predicted_on_a_scale_is_shown_there(tmp_path: Path) -> None:
    found = trial(tmp_path, Plan(predicted=GUESSES))
    assert [one.number for one in calibration.pairs(found, "speedup")] == [1, 3, 5]
    assert [one.number for one in calibration.pairs(found, "own score")] == [3, 4]
    assert calibration.scales(found) == ("speedup", "own score")


def test_a_trial_without_predictions_has_no_scale(tmp_path: Path) -> None:
    assert calibration.scales(trial(tmp_path, Plan())) == ()


def test_what_was_measured_is_the_search_time_score_and_none_for_a_failure(tmp_path: Path) -> None:
    found = trial(tmp_path, Plan(predicted=GUESSES))
    by_number = {attempt.number: attempt for attempt in found.attempts}
    first, third, fifth = calibration.pairs(found)
    assert (first.measured, first.status) == (None, Status.COMPILE_ERROR)
    assert third.measured == by_number[3].score.value and fifth.measured == by_number[5].score.value


def test_rank_correlation_says_over_how_many() -> None:
    found = [pair(1.0, 0.5), pair(2.0, 0.7), pair(3.0, 0.9), pair(4.0, None)]
    rho, count = calibration.rank_correlation(found, failures=False)
    assert (rho, count) == pytest.approx((1.0, 3))
    rho, count = calibration.rank_correlation(found, failures=True)
    assert count == 4 and rho is not None and rho < 0.5


@pytest.mark.parametrize(
    "found", [[], [pair(1, 1), pair(2, 2)], [pair(1, 1), pair(1, 2), pair(1, 3)], [pair(1, 2), pair(2, 2), pair(3, 2)]]
)
def test_there_is_no_rank_correlation_of_too_few_or_of_equals(found: list[Pair]) -> None:
    assert calibration.rank_correlation(found, failures=True) == (None, len(found))
    assert "cannot be given" in " ".join(calibration.summary(found, "speedup"))


def test_the_mean_ratio_is_of_what_passed() -> None:
    found = [pair(2.0, 1.0), pair(1.0, 2.0), pair(4.0, 1.0), pair(9.0, None), pair(0.0, 1.0)]
    assert calibration.mean_ratio(found) == pytest.approx(((0.5 * 2 * 0.25) ** (1 / 3), 3))
    assert calibration.mean_ratio([pair(1.0, None)]) == (None, 0)
    assert "too hopeful" in calibration.summary(found, "speedup")[-1]
    assert "of 3" in calibration.summary(found, "speedup")[-1]
    assert not any("ratio" in text or "Measured" in text for text in calibration.summary(found, "own score"))


def test_the_figure_has_both_axes_alike_a_diagonal_and_failures_on_the_rim(tmp_path: Path) -> None:
    found = calibration.pairs(trial(tmp_path, Plan(predicted=GUESSES)))
    figure = calibration.figure("avo", found, "speedup")
    diagonal, passed, failed = figure.data
    assert figure.layout.xaxis.range == figure.layout.yaxis.range
    assert diagonal.x == diagonal.y
    assert list(passed.y) == [one.measured for one in found if one.measured]
    rim = 10 ** figure.layout.yaxis.range[0]
    assert list(failed.y) == [pytest.approx(rim)]
    assert passed.x[1] == pytest.approx(rim), "a predicted 0 has no place on a logarithmic axis but its rim"
    assert all(math.isfinite(value) for value in (*passed.x, *passed.y, *failed.x))


def test_a_methods_own_score_has_a_plain_axis_and_no_diagonal(tmp_path: Path) -> None:
    found = calibration.pairs(trial(tmp_path, Plan(predicted=GUESSES)), "own score")
    figure = calibration.figure("avo", found, "own score")
    assert len(figure.data) == 2 and figure.layout.xaxis.type is None and figure.layout.yaxis.type == "log"
