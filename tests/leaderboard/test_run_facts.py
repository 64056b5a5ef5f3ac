"""What an MLflow run is told: few names, no absurd numbers, a best that never falls."""

from __future__ import annotations

import math

import pytest

from leaderboard import run_facts
from suite.events import ChampionMeasured, Evaluated, TrialFinished, TrialStarted
from suite.score import score
from suite.types import Spent, Split, Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, Plan

PLAN = Plan("best_of_n", options={"width": 4})
EVENTS = canned.events(PLAN)


def test_params_tell_the_whole_identity_as_text() -> None:
    event = EVENTS[0]
    assert isinstance(event, TrialStarted)
    params = run_facts.started(event).params
    expected = {"method": "best_of_n", "option.width": "4", "seed": "1", "budget.evaluations": "16", "model": "tuner"}
    assert expected.items() <= params.items()
    assert "budget.usd" not in params and all(params.values())


def test_a_candidate_that_failed_has_no_speedup_of_its_own() -> None:
    judged = [event for event in EVENTS if isinstance(event, Evaluated)]
    facts = [run_facts.evaluated(event, 0.9, 2) for event in judged]
    own = [one.metrics.get("speedup/candidate") for one in facts]
    assert own == [
        score(event.evaluation).value if event.evaluation.status == Status.PASSED else None for event in judged
    ]
    assert {one.metrics["speedup/best"] for one in facts} == {0.9}
    assert {one.metrics["evals/failed"] for one in facts} == {2.0}
    assert [one.wall_s for one in facts] == [event.spent.wall_s for event in judged]


def test_an_unknown_price_is_left_out() -> None:
    assert "cost/usd_total" not in run_facts.totals(Spent(usd=None))
    assert run_facts.totals(Spent(usd=0.5))["cost/usd_total"] == 0.5


def test_the_champions_numbers_are_the_scoring_librarys() -> None:
    (event,) = [event for event in EVENTS if isinstance(event, ChampionMeasured)]
    metrics = run_facts.champion(event, 3.0).metrics
    heldout = score(event.evaluation, Split.HELDOUT)
    assert (metrics["speedup/heldout"], metrics["speedup/heldout_low"]) == (heldout.value, heldout.low)
    assert metrics["rate/gflops"] > 0


@pytest.mark.parametrize("status", [Status.COMPILE_ERROR, Status.INCORRECT_NUMERICAL])
def test_a_champion_that_failed_is_zero_and_has_no_rate(status: Status) -> None:
    (event,) = [event for event in canned.events(Plan(champion=status)) if isinstance(event, ChampionMeasured)]
    facts = run_facts.champion(event, 0.0)
    assert facts.metrics["speedup/heldout"] == 0.0 and "rate/gflops" not in facts.metrics
    assert facts.tags["derby.status"] == status.value


def test_no_nan_and_no_infinity() -> None:
    assert run_facts.finite({"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.0}) == {"d": 1.0}


def test_a_run_has_far_fewer_than_fifty_metric_names() -> None:
    names: set[str] = set()
    for event in canned.events(Plan(model=LLM)) + EVENTS:
        match event:
            case Evaluated():
                names |= run_facts.evaluated(event, 1.0, 0).metrics.keys()
            case ChampionMeasured():
                names |= run_facts.champion(event, 0.0).metrics.keys()
            case TrialFinished():
                names |= run_facts.finished(event).metrics.keys()
    assert len(names) <= 30


def test_the_workload_table_has_a_line_for_every_workload() -> None:
    (event,) = [event for event in EVENTS if isinstance(event, ChampionMeasured)]
    table = run_facts.workloads(event.evaluation)
    assert [line["uuid"] for line in table] == [work.uuid for work in canned.SEARCH + canned.HELDOUT]
    assert all(line["candidate_us"] for line in table)
