"""What every registered method must do: keep to budgets, survive bad luck, repeat itself, leave no trace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from suite.events import ChampionMeasured, MethodEnded, TrialFinished
from suite.ledger import read
from suite.scripted import ScriptedEvaluator, ScriptedModel
from suite.types import Budget, Candidate, Spent
from suite.workbench import Model
from tests.conformance.racer import BUDGET, race
from tests.conformance.searching import ASKING, EVERY, answered, calls, proposed, search
from tests.methods.course import AllFail, Hill

DEADLINE_S = 120.0
USELESS = {
    "nothing": "",
    "blank": " \n",
    "words": "I am afraid I can not.",
    "empty block": "```\n```",
    "open block": "```cpp\nint x",
    "open edit": "<<<<<<< SEARCH\n",
}


# ---------------------------------------------------------------------------------------------- budgets


@EVERY
@pytest.mark.parametrize("concurrency", [1, 3])
def test_it_spends_its_evaluations_and_no_more(name: str, concurrency: int, tmp_path: Path, stand_in: Model) -> None:
    spent = search(tmp_path, name, Hill(), stand_in, concurrency=concurrency).desk.meter.spent
    assert spent.evaluations == BUDGET.evaluations == len(proposed(tmp_path))


@ASKING
def test_it_spends_no_more_than_its_tokens(name: str, tmp_path: Path, stand_in: Model) -> None:
    spent = search(tmp_path, name, Hill(), stand_in, Budget(tokens=5000)).desk.meter.spent
    assert 0 < spent.usage.total <= 5000


@ASKING
def test_it_spends_no_more_than_its_dollars(name: str, tmp_path: Path, stand_in: Model) -> None:
    spent = search(tmp_path, name, Hill(), stand_in, Budget(usd=0.03)).desk.meter.spent
    assert spent.usd is not None and 0 < spent.usd <= 0.03


@EVERY
def test_it_ends_when_its_time_is_over(name: str, tmp_path: Path, stand_in: Model) -> None:
    budget = Budget(wall_s=0.3, evaluations=10_000)
    assert search(tmp_path, name, Hill(), stand_in, budget).desk.meter.spent.wall_s <= 0.3


# ---------------------------------------------------------------------------------------------- bad luck


@EVERY
def test_it_goes_on_when_all_its_candidates_fail(name: str, tmp_path: Path, stand_in: Model) -> None:
    search(tmp_path, name, AllFail(), stand_in)
    assert len(proposed(tmp_path)) == BUDGET.evaluations


@answered(USELESS)
def test_it_gives_up_on_a_model_that_says_nothing_of_use(name: str, texts: list[str], tmp_path: Path) -> None:
    search(tmp_path, name, Hill(), ScriptedModel(texts))
    assert proposed(tmp_path) == []
    assert 1 <= len(calls(tmp_path)) <= 100


@EVERY
def test_failures_of_ours_cost_it_nothing(name: str, tmp_path: Path, stand_in: Model) -> None:
    unlucky = search(tmp_path / "unlucky", name, ScriptedEvaluator(lost=frozenset({3, 4, 7})), stand_in)
    search(tmp_path / "lucky", name, ScriptedEvaluator(), stand_in)
    assert unlucky.desk.meter.spent.refunds == 3
    assert unlucky.desk.meter.spent.evaluations == BUDGET.evaluations
    assert proposed(tmp_path / "unlucky") == proposed(tmp_path / "lucky")


@EVERY
def test_the_same_seed_and_answers_give_the_same_candidates(name: str, tmp_path: Path, stand_in: Model) -> None:
    for folder in ("first", "second"):
        search(tmp_path / folder, name, Hill(), stand_in)
    assert proposed(tmp_path / "first") == proposed(tmp_path / "second") != []


# ---------------------------------------------------------------------------------------------- as a process


def totals(folder: Path) -> tuple[Spent, list[Candidate]]:
    """What the finished trial cost, clocks and refunds aside, and what it proposed."""
    end = read(folder / "ledger.jsonl")[-1].event
    assert isinstance(end, TrialFinished)
    return end.spent.model_copy(update={"wall_s": 0.0, "waited_s": 0.0, "free": 0}), proposed(folder)


@pytest.mark.slow
@EVERY
def test_it_runs_behind_the_door_and_leaves_neither_process_nor_file(name: str, tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    assert race(tmp_path, name) == "finished"
    events = [entry.event for entry in read(tmp_path / "ledger.jsonl")]
    (end,) = [event for event in events if isinstance(event, MethodEnded)]
    assert (end.reason, end.exit_code) == ("budget of evaluations spent", 0), end.log
    assert any(isinstance(event, ChampionMeasured) for event in events)
    assert {child.pid for child in psutil.Process().children(recursive=True)} == before
    assert {path.name for path in tmp_path.iterdir()} <= {"ledger.jsonl", "method.log", "scratch"}


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("after", [1, 4, 9])
def test_killed_and_run_again_it_costs_what_it_would_have_cost(name: str, after: int, tmp_path: Path) -> None:
    interrupted, whole = tmp_path / "interrupted", tmp_path / "whole"
    command = [sys.executable, "-m", "tests.conformance.racer", str(interrupted), name, "0.2"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as racer:
        deadline = time.monotonic() + DEADLINE_S
        while racer.poll() is None and _judged(interrupted) < after:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        racer.kill()
    left_behind = _judged(interrupted)
    assert race(interrupted, name) == race(whole, name) == "finished"
    assert left_behind >= after
    (spent, candidates), (wanted, others) = totals(interrupted), totals(whole)
    assert candidates == others
    # A reply that was under way when the trial was killed is charged in full, and asked for again.
    assert spent.usd is not None and wanted.usd is not None and spent.usd >= wanted.usd
    usd = wanted.usd if spent.unconfirmed_tokens else spent.usd
    assert spent.model_copy(update={"unconfirmed_tokens": 0, "usd": usd}) == wanted
    assert _strangers(str(interrupted)) == []


def _judged(folder: Path) -> int:
    ledger = folder / "ledger.jsonl"
    return ledger.read_bytes().count(b'"kind":"evaluated"') - 1 if ledger.exists() else 0


def _strangers(folder: str) -> list[int]:
    """Processes that work in a trial's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.cwd().startswith(folder):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
