"""Nothing is begun that a budget no longer covers or that nobody would be left to record."""

from __future__ import annotations

import threading

import pytest

from suite.bench import TrialBench
from suite.errors import BudgetExhausted, Stopped
from suite.ledger import Ledger
from suite.scripted import ScriptedEvaluator
from suite.types import Budget
from tests.suite.stage import candidate, order
from tests.suite.test_workbench import Bench, bench

__all__ = ["bench"]


def test_calls_that_waited_for_a_lane_are_not_begun_once_the_time_is_over(bench: Bench) -> None:
    opened = bench.open(Budget(wall_s=0.5), ScriptedEvaluator(seconds=0.2))
    spent: list[str] = []

    def propose(number: int) -> None:
        try:
            opened.evaluate(candidate(f"// {number}"))
        except BudgetExhausted as end:
            spent.append(end.kind)

    threads = [threading.Thread(target=propose, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= 12 - len(spent) <= 3 and set(spent) == {"wall_s"}
    assert opened.desk.exhausted == "wall_s"
    assert opened.desk.meter.spent.evaluations == 12 - len(spent)


def test_no_lane_is_given_once_the_trial_has_ended(bench: Bench) -> None:
    opened = bench.open()
    opened.end(1.0)
    with pytest.raises(Stopped), opened.desk.lane():
        raise AssertionError("it was given")


def test_a_method_that_asks_no_model_needs_no_price_for_dollars(bench: Bench) -> None:
    trial = order(bench.folder, budget=Budget(usd=1.0, evaluations=2))
    trial = trial.model_copy(update={"spec": trial.spec.model_copy(update={"model": None})})
    with Ledger.open(bench.folder / "ledger.jsonl") as ledger:
        opened = TrialBench.over(trial, ledger, ScriptedEvaluator(), None, bench.stop)
        assert opened.left().usd == 1.0
