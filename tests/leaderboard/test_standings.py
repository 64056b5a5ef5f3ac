"""Tables compare what may be compared, and no failure ever pays."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.reading import load
from leaderboard.records import TrialRecord
from leaderboard.standings import Partition, Row, Table, as_dicts, over_trials, standings
from suite.score import ZERO, Estimate, over_seeds
from suite.types import Budget, Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, TUNER, Plan

POSITIVE = st.floats(0.05, 20)
SPEED = st.one_of(st.just(0.0), POSITIVE)


def board(runs: Path, *plans: Plan) -> tuple[Table, ...]:
    for plan in plans:
        canned.write(runs, plan)
    return standings(load(runs))


def one(runs: Path, *plans: Plan) -> Table:
    (table,) = board(runs, *plans)
    return table


def row(table: Table, name: str) -> Row:
    (found,) = [row for row in table.rows if row.name == name]
    return found


def value(estimate: Estimate | None) -> float:
    assert estimate is not None
    return estimate.value


def estimates(values: list[float]) -> list[Estimate]:
    return [Estimate(value=value, low=value * 0.9, high=value * 1.1) if value else ZERO for value in values]


def test_five_seeds_make_a_ranked_row_over_seeds(tmp_path: Path) -> None:
    plans = [Plan("tpe", seed, champion=speed, model=None) for seed, speed in enumerate((1.1, 1.2, 1.3, 1.2, 1.1))]
    tpe = row(one(tmp_path, *plans), "tpe")
    values = [trial.champion.heldout.value for trial in load(tmp_path) if trial.champion]
    assert tpe.heldout == over_seeds(values)
    assert (tpe.rank, tpe.seeds, tpe.preliminary, tpe.failed) == (1, 5, False, 0)


def test_one_seed_is_preliminary_unranked_and_has_the_champions_own_interval(tmp_path: Path) -> None:
    only = row(one(tmp_path, Plan(champion=1.2)), "best_of_n")
    (trial,) = load(tmp_path)
    assert trial.champion is not None and only.heldout is not None
    expected = trial.champion.heldout
    assert only.heldout.value == pytest.approx(expected.value)
    assert (only.heldout.low, only.heldout.high, only.heldout.over) == (expected.low, expected.high, "launches")
    assert only.rank is None and only.preliminary and "preliminary" in only.marks


def test_two_seeds_have_the_hull_of_their_intervals() -> None:
    both = over_trials(
        [Estimate(value=1.0, low=0.9, high=1.1, over="launches"), Estimate(value=4.0, low=3.8, high=4.2)]
    )
    assert both is not None
    assert both.value == pytest.approx(2.0) and (both.low, both.high) == (0.9, 4.2)


def test_below_the_baseline_is_shown_as_measured(tmp_path: Path) -> None:
    assert value(row(one(tmp_path, Plan(champion=0.37)), "best_of_n").heldout) == pytest.approx(0.37, rel=0.05)


def test_a_champion_that_fails_scores_zero_and_stays(tmp_path: Path) -> None:
    plans = [Plan(seed=1, champion=1.5), Plan(seed=2, champion=Status.INCORRECT_NUMERICAL)]
    found = row(one(tmp_path, *plans), "best_of_n")
    assert (value(found.heldout), value(found.search), found.seeds, found.failed) == (0.0, 0.0, 2, 1)
    assert "1 of 2 champions failed" in found.marks
    assert found.search_time is not None and found.search_time > 1


def test_a_trial_that_found_nothing_is_a_zero_too(tmp_path: Path) -> None:
    found = row(one(tmp_path, Plan(speeds=(Status.TIMEOUT,))), "best_of_n")
    assert (value(found.heldout), found.failed, found.search_time) == (0.0, 1, 0.0)


def test_stand_ins_and_models_never_share_a_table(tmp_path: Path) -> None:
    tables = board(tmp_path, Plan(model=TUNER), Plan("tpe", model=None), Plan("avo", model=LLM), Plan(model=LLM))
    methods = {table.partition.model: {row.name for row in table.rows if row.kind == "method"} for table in tables}
    assert methods == {None: {"best_of_n", "tpe"}, LLM: {"avo", "best_of_n"}}
    marks = {row.no_llm for table in tables for row in table.rows if row.kind == "method" and table.partition.model}
    assert marks == {False}


@pytest.mark.parametrize(
    "change",
    [
        {"edition": "2026.12"},
        {"task_digest": "f" * 64},
        {"brief_digest": "f" * 64},
        {"lane": "sm90"},
        {"device": "another"},
        {"language": "python"},
        {"starter": "expert"},
        {"budget": Budget(evaluations=17)},
        {"concurrency": 2},
        {"timing_protocol": "cpu-2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_conditions_are_another_table(change: dict[str, object]) -> None:
    spec = canned.trial_spec(Plan())
    assert Partition.of(spec.model_copy(update=change)) != Partition.of(spec)


@pytest.mark.parametrize("change", [{"seed": 9}, {"race": "other"}, {"toolchain": {}}, {"model": None}])
def test_what_a_row_averages_over_is_no_condition(change: dict[str, object]) -> None:
    spec = canned.trial_spec(Plan())
    assert Partition.of(spec.model_copy(update=change)) == Partition.of(spec)


def test_a_method_with_other_options_is_another_row(tmp_path: Path) -> None:
    table = one(tmp_path, Plan("tpe", options={"startup": 4}), Plan("tpe", options={"startup": 8}))
    assert sorted(row.options for row in table.rows if row.kind == "method") == ["startup 4", "startup 8"]


def test_racing_a_seed_again_does_not_replace_it(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(champion=1.1, race="a"))
    first = row(one(tmp_path), "best_of_n")
    again = row(one(tmp_path, Plan(champion=1.9, race="b")), "best_of_n")
    assert (again.heldout, again.seeds, again.repeats) == (first.heldout, 1, 1)
    assert len(again.trials) == 2


def test_an_unfinished_trial_is_listed_and_not_counted(tmp_path: Path) -> None:
    found = row(one(tmp_path, Plan(finished=False)), "best_of_n")
    assert (found.heldout, found.seeds, found.unfinished) == (None, 0, 1)
    assert found.search_time == pytest.approx(1.3, rel=0.05)


def test_starter_and_baseline_stand_below_the_methods_for_orientation(tmp_path: Path) -> None:
    table = one(tmp_path, Plan(champion=0.2), Plan("tpe", champion=0.9))
    assert [row.kind for row in table.rows] == ["method", "method", "starter", "baseline"]
    assert [row.name for row in table.rows[:2]] == ["tpe", "best_of_n"]
    assert table.rows[2].search_time == pytest.approx(0.4, rel=0.05)
    assert value(table.rows[3].heldout) == 1.0


def test_spending_is_the_mean_and_an_unknown_price_stays_unknown(tmp_path: Path) -> None:
    free = row(one(tmp_path / "a", Plan(seed=1), Plan(seed=2)), "best_of_n")
    assert (free.evaluations, free.tokens, free.usd, free.wall_s) == (5, 5 * 3300, 0.0, 32.5)
    assert row(one(tmp_path / "b", Plan(model=LLM)), "best_of_n").usd is None


def test_rates_are_those_of_the_heldout_workloads(tmp_path: Path) -> None:
    found = row(one(tmp_path, Plan(champion=2.0)), "best_of_n")
    # 60,000 operations and 20,000 bytes per microsecond of the baseline, at twice its speed.
    assert found.gflops == pytest.approx(120, rel=0.05)
    assert found.gbytes_per_s == pytest.approx(40, rel=0.05)


def test_exports_carry_every_row_and_are_plain_json(tmp_path: Path) -> None:
    tables = board(tmp_path, *canned.demo(1), Plan(seed=9, champion=Status.TIMEOUT))
    rows = as_dicts(tables)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert len(rows) == sum(len(table.rows) for table in tables)
    first = tables[0].rows[0]
    assert first.heldout is not None and rows[0]["heldout_speedup"] == first.heldout.value


def test_the_order_of_trials_does_not_matter(tmp_path: Path) -> None:
    tables = board(tmp_path, Plan(seed=1), Plan(seed=2), Plan("tpe"), Plan("avo", model=LLM))
    assert standings(reversed(load(tmp_path))) == tables


@given(st.lists(SPEED, max_size=7))
def test_an_added_zero_never_raises_a_score(values: list[float]) -> None:
    before, after = over_trials(estimates(values)), over_trials(estimates([*values, 0.0]))
    assert value(after) <= (before.value if before else 0.0)


@given(st.lists(SPEED, min_size=1, max_size=7), st.data())
def test_a_seed_that_fails_never_raises_a_score(values: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    failed = [0.0 if index == place else value for index, value in enumerate(values)]
    assert value(over_trials(estimates(failed))) <= value(over_trials(estimates(values)))


@given(st.lists(POSITIVE, min_size=1, max_size=7))
def test_a_row_is_the_geometric_mean_of_its_seeds(values: list[float]) -> None:
    mean = math.exp(sum(map(math.log, values)) / len(values))
    assert value(over_trials(estimates(values))) == pytest.approx(mean)


def test_a_failed_workload_makes_the_trial_zero(tmp_path: Path) -> None:
    good = load_one(tmp_path / "good", Plan(champion=1.5))
    bad = load_one(tmp_path / "bad", Plan(champion=Status.OUT_OF_BOUNDS))
    assert good.champion is not None and bad.champion is not None
    assert good.champion.heldout.value > 0 == bad.champion.heldout.value


def load_one(runs: Path, plan: Plan) -> TrialRecord:
    canned.write(runs, plan)
    return load(runs)[0]


def test_a_row_is_called_by_its_options_only_where_names_are_shared(tmp_path: Path) -> None:
    wide, deep = Row(kind="method", name="tpe", options="width 4"), Row(kind="method", name="tpe", options="depth 2")
    other = Row(kind="method", name="best_of_n", options="give_up_after 10")
    table = Table(partition=one(tmp_path, Plan()).partition, rows=(wide, deep, other))
    assert [table.label(row) for row in table.rows] == ["tpe (width 4)", "tpe (depth 2)", "best_of_n"]
