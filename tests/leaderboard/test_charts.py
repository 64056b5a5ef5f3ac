"""Figures show the records' numbers, with units and one colour per method."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard import charts
from leaderboard.records import TrialRecord, load
from leaderboard.standings import Table, standings
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, Plan


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrialRecord, ...]:
    runs = tmp_path_factory.mktemp("runs")
    for plan in (*canned.demo(1), Plan("best_of_n", 9, champion=Status.TIMEOUT)):
        canned.write(runs, plan)
    return load(runs)


@pytest.fixture(scope="module")
def table(trials: tuple[TrialRecord, ...]) -> Table:
    (table,) = standings(trials)
    return table


def test_a_methods_colour_does_not_depend_on_its_company() -> None:
    assert charts.colours(["tpe"])["tpe"] == charts.colours(["avo", "stranger", "tpe"])["tpe"]
    everyone = charts.colours([*charts.KNOWN, "a", "b"])
    assert len(set(everyone.values())) == len(everyone)


def test_the_curve_has_every_candidate_once_and_failures_on_the_zero_line(trials: tuple[TrialRecord, ...]) -> None:
    trial = trials[0]
    best, passed, failed = charts.curve(trial).data
    assert list(best.y) == [attempt.best for attempt in trial.attempts]
    assert sorted([*passed.x, *failed.x]) == [attempt.number for attempt in trial.attempts]
    assert set(failed.y) == {0.0}
    assert {text for _, text, _ in failed.customdata} <= {status.value for status in Status} - {"PASSED"}


def test_nothing_is_drawn_as_best_before_something_passed(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(speeds=(Status.TIMEOUT, 0.5)))
    best = charts.curve(load(tmp_path)[0]).data[0]
    assert best.y[0] is None and best.y[1] is not None


@pytest.mark.parametrize("axis", charts.AXES)
def test_every_axis_can_be_drawn_and_is_named(axis: charts.Axis, trials: tuple[TrialRecord, ...]) -> None:
    for figure in (charts.curve(trials[0], axis), charts.curves(trials, axis)):
        assert axis in figure.layout.xaxis.title.text
        assert "×" in figure.layout.yaxis.title.text


def test_an_unknown_price_is_left_out_of_the_dollar_axis(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(model=LLM))
    assert all(not trace.x for trace in charts.curve(load(tmp_path)[0], "USD").data)


def test_curves_name_each_method_once(trials: tuple[TrialRecord, ...]) -> None:
    shown = [trace.name for trace in charts.curves(trials).data if trace.showlegend]
    assert sorted(shown) == ["best_of_n", "tpe"]


def test_intervals_show_the_tables_numbers(table: Table) -> None:
    dots = {trace.name: trace for trace in charts.intervals(table).data}
    for row in table.rows:
        if row.kind == "method":
            assert row.heldout is not None and row.search is not None
            assert list(dots[f"{row.name}, held-out"].x) == [row.heldout.value]
            assert list(dots[f"{row.name}, search"].x) == [row.search.value]


def test_an_interval_chart_without_a_measured_row_is_empty(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(finished=False))
    (table,) = standings(load(tmp_path))
    assert len(charts.intervals(table).data) == 0
