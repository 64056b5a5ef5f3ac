"""Figures show the records' numbers, with units and one colour per method."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard import charts
from leaderboard.reading import load
from leaderboard.records import TrialRecord
from leaderboard.standings import Table, standings
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan


@pytest.fixture(scope="module")
def table(trials: tuple[TrialRecord, ...]) -> Table:
    (table,) = standings(trials)
    return table


def test_a_methods_colour_does_not_depend_on_its_company() -> None:
    assert charts.colours(["tpe"])["tpe"] == charts.colours(["avo", "stranger", "tpe"])["tpe"]
    everyone = charts.colours([*charts.KNOWN, "a", "b"])
    assert len(set(everyone.values())) == len(everyone)


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
