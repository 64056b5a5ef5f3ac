"""Curves over seeds: median and range of the best so far, and nothing said of what is not known."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from leaderboard import steps
from leaderboard.reading import load
from leaderboard.records import TrialRecord
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, Plan, Speed

SPEEDS: tuple[tuple[Speed, ...], ...] = ((0.4, 0.5, 1.5, 1.6), (0.4, Status.TIMEOUT, 0.9), (0.4, 0.8, 0.7, 1.0, 1.1))


@pytest.fixture
def trials(tmp_path: Path) -> tuple[TrialRecord, ...]:
    for seed, speeds in enumerate(SPEEDS):
        canned.write(tmp_path, Plan(seed=seed, speeds=speeds))
    return load(tmp_path)


def spread(trials: tuple[TrialRecord, ...], axis: steps.Axis = "evaluations") -> steps.Spread:
    found = steps.spread(trials, axis)
    assert found is not None
    return found


def best_at(trial: TrialRecord, axis: steps.Axis, x: float) -> float:
    return [attempt.best for attempt in trial.attempts if steps.at(attempt, axis) <= x][-1]


@pytest.mark.parametrize("axis", steps.AXES)
def test_every_point_is_the_median_and_range_of_the_seeds(axis: steps.Axis, trials: tuple[TrialRecord, ...]) -> None:
    found = spread(trials, axis)
    for x, median, low, high in zip(found.x, found.median, found.low, found.high, strict=True):
        values = [best_at(trial, axis, x) for trial in trials]
        assert (median, low, high) == (statistics.median(values), min(values), max(values))
    assert found.seeds == 3


def test_steps_never_fall(trials: tuple[TrialRecord, ...]) -> None:
    found = spread(trials, "tokens")
    for line in (found.median, found.low, found.high):
        assert list(line) == sorted(line)


def test_a_finished_trial_keeps_its_best_beyond_its_end(trials: tuple[TrialRecord, ...]) -> None:
    assert spread(trials).x[-1] == 4


def test_an_unfinished_trial_ends_the_curve_where_it_stands(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(seed=1, speeds=(0.4, 0.5, 0.6, 0.7)))
    canned.write(tmp_path, Plan(seed=2, speeds=(0.4, 0.5), finished=False))
    assert spread(load(tmp_path)).x[-1] == 1


def test_places_where_nothing_changes_are_left_out_but_for_the_ends(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(speeds=(0.9, *[0.4] * 30, 1.2, 0.4)))
    assert spread(load(tmp_path)).x == (0.0, 31.0, 32.0)


def test_a_trial_without_a_verdict_has_no_curve(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(speeds=()))
    assert steps.spread(load(tmp_path), "evaluations") is None


def test_an_unknown_price_is_said_and_not_drawn_as_zero(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(model=LLM))
    (trial,) = load(tmp_path)
    assert not steps.drawable(trial, "USD") and steps.spread([trial], "USD") is None
    (remark,) = steps.remarks([("avo", [trial])], "USD")
    assert "avo: 1 of 1 trials not drawn" in remark and "price of large-1 (high) is unknown" in remark
    assert steps.remarks([("avo", [trial])], "tokens") == []


def test_a_known_price_is_drawn_without_a_remark(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(model=LLM, usd=0.25))
    (trial,) = load(tmp_path)
    assert spread((trial,), "USD").x[-1] == pytest.approx(5 * 0.25)
    assert steps.remarks([("avo", [trial])], "USD") == []


def test_who_has_used_nothing_is_named(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan("tpe", model=None))
    (remark,) = steps.remarks([("tpe", load(tmp_path))], "tokens")
    assert "tpe has used no tokens" in remark
    assert steps.used(load(tmp_path), "tokens") == 0
