"""Whatever a method does or leaves undone, its trial ends; waiting for what is under way is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.bench import CALLS
from suite.errors import BudgetExhausted
from suite.events import Message
from suite.scripted import ScriptedEvaluator, ScriptedModel
from suite.types import Budget
from tests.suite.stage import candidate, order
from tests.suite.test_trial import last, method_end, run
from tests.suite.test_workbench import Bench

QUESTION = [Message(role="user", content="well?")]


@pytest.mark.slow
def test_a_method_that_stalls_is_ended_and_its_champion_measured(tmp_path: Path) -> None:
    trial = order(tmp_path, "Dallying", Budget(evaluations=9)).model_copy(update={"stall_s": 5.0})
    assert run(trial) == "finished"
    assert last(trial).reason == "method stalled" and last(trial).champion == candidate("// scripted: 3.0").id
    assert method_end(trial).exit_code == 128 + 15
    assert run(trial) == "finished"


@pytest.mark.slow
def test_waiting_for_a_verdict_is_no_stall(tmp_path: Path) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=1)).model_copy(update={"stall_s": 5.0})
    run(trial, ScriptedEvaluator(seconds=6.5))
    assert last(trial).reason == "budget of evaluations spent"


@pytest.mark.slow
def test_a_method_that_only_talks_is_ended(tmp_path: Path) -> None:
    trial = order(tmp_path, "Chattering", Budget(evaluations=9))
    assert run(trial, model=ScriptedModel(["well."])) == "finished"
    assert last(trial).reason == "500 model calls in a row without a candidate"
    assert last(trial).spent.calls == CALLS


def test_a_candidate_begins_the_count_of_calls_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.bench.CALLS", 3)
    bench = Bench(tmp_path)
    opened = bench.open(Budget(evaluations=2), model=ScriptedModel(["well."]))
    for _ in range(2):
        opened.chat(QUESTION)
    opened.evaluate(candidate("// a"))
    for _ in range(3):
        opened.chat(QUESTION)
    with pytest.raises(BudgetExhausted, match="calls"):
        opened.chat(QUESTION)
    bench.close()
