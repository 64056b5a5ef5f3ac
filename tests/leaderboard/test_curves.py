"""Convergence figures show the records' numbers, with units, and leave out what has no place on an axis."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard import curves, steps
from leaderboard.curves import Method
from leaderboard.reading import load
from leaderboard.records import TrialRecord
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, Plan


def method(trials: tuple[TrialRecord, ...], name: str, label: str = "") -> Method:
    return Method(label or name, name, tuple(trial for trial in trials if trial.spec.method.name == name))


def test_the_curve_has_every_candidate_once_and_failures_on_the_zero_line(trials: tuple[TrialRecord, ...]) -> None:
    trial = trials[0]
    best, passed, failed = curves.one_trial(trial).data
    assert list(best.y) == [attempt.best for attempt in trial.attempts]
    assert sorted([*passed.x, *failed.x]) == [attempt.number for attempt in trial.attempts]
    assert set(failed.y) == {0.0}
    assert {told.split("<br>")[1] for told in failed.hovertext} <= {status.value for status in Status} - {"PASSED"}


def test_a_dot_tells_tokens_by_their_kinds(trials: tuple[TrialRecord, ...]) -> None:
    _, passed, failed = curves.one_trial(method(trials, "best_of_n").trials[0]).data
    (last,) = [told for told in (*passed.hovertext, *failed.hovertext) if told.startswith("candidate 16<")]
    assert "so far: 38.4 k tokens in (19.2 k cached), 14.4 k out (4.80 k reasoning)<br>$0.00, 1 min 44 s" in last


def test_nothing_is_drawn_as_best_before_something_passed(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(speeds=(Status.TIMEOUT, 0.5)))
    best = curves.one_trial(load(tmp_path)[0]).data[0]
    assert best.y[0] is None and best.y[1] is not None


@pytest.mark.parametrize("axis", steps.AXES)
def test_every_axis_can_be_drawn_and_is_named(axis: steps.Axis, trials: tuple[TrialRecord, ...]) -> None:
    rows = [method(trials, "best_of_n"), method(trials, "tpe")]
    figures = curves.one_trial(trials[0], axis), curves.every_trial(trials, axis), curves.methods(rows, axis)
    for figure in figures:
        assert axis in figure.layout.xaxis.title.text
        assert "over the baseline (×)" in figure.layout.yaxis.title.text


def test_an_unknown_price_is_left_out_of_the_dollar_axis(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(model=LLM))
    trials = load(tmp_path)
    assert all(not trace.x for trace in curves.one_trial(trials[0], "USD").data)
    assert not curves.every_trial(trials, "USD").data
    assert not curves.methods([method(trials, "best_of_n")], "USD").data


def test_curves_name_each_method_once(trials: tuple[TrialRecord, ...]) -> None:
    for figure in (
        curves.every_trial(trials),
        curves.methods([method(trials, "best_of_n"), method(trials, "tpe")]),
    ):
        shown = [trace.name for trace in figure.data if trace.showlegend is not False]
        assert sorted(shown) == ["best_of_n", "tpe"]


def test_a_method_is_its_median_within_its_range(trials: tuple[TrialRecord, ...]) -> None:
    row = method(trials, "best_of_n")
    low, high, median, *_ = curves.methods([row]).data
    found = steps.spread(row.trials, "evaluations")
    assert found is not None
    assert (list(median.x), list(median.y)) == (list(found.x), list(found.median))
    assert (list(low.y), list(high.y)) == (list(found.low), list(found.high))
    assert "median of 2 seeds" in median.hovertemplate


def test_a_method_that_ended_early_goes_on_dotted(trials: tuple[TrialRecord, ...]) -> None:
    rows = [method(trials, "best_of_n"), method(trials, "tpe")]
    (tail,) = [trace for trace in curves.methods(rows, "tokens").data if trace.name == "tpe, ended"]
    assert tail.line.dash == "dot" and tail.x == (0.0, 16 * 3300)


def test_rows_that_differ_in_options_only_have_other_dashes(trials: tuple[TrialRecord, ...]) -> None:
    rows = [method(trials, "tpe", "tpe (a)"), method(trials, "tpe", "tpe (b)")]
    lines = [trace.line for trace in curves.methods(rows).data if trace.name in ("tpe (a)", "tpe (b)")]
    assert len({line.dash for line in lines}) == 2 and len({line.color for line in lines}) == 1
