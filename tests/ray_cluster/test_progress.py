"""A trial's standing follows from its ledger alone, line by line."""

from __future__ import annotations

from pathlib import Path

from ray_cluster.progress import Progress, State, advance, waiting
from suite.events import (
    ChampionMeasured,
    Evaluated,
    Event,
    MethodEnded,
    ModelRequested,
    TrialFinished,
    TrialResumed,
    TrialStarted,
    TrialSuspended,
)
from suite.scripted import ScriptedEvaluator
from suite.trial import FAILED, KILLED
from suite.types import Budget, Job, Spent, Tier, Usage
from tests.suite.stage import HELDOUT, candidate, order, task


def judged(number: int, text: str, **spent: object) -> Evaluated:
    one = candidate(f"// scripted: {text}\n// {number}")
    evaluation = ScriptedEvaluator().evaluate(Job(task=task(), candidate=one, tier=Tier.SEARCH))
    return Evaluated(number=number, candidate=one, evaluation=evaluation, spent=Spent.model_validate(spent))


def measured(text: str) -> ChampionMeasured:
    one = candidate(f"// scripted: {text}")
    job = Job(task=task(), candidate=one, tier=Tier.CHAMPION, heldout=HELDOUT)
    return ChampionMeasured(candidate=one.id, heldout=HELDOUT, evaluation=ScriptedEvaluator().evaluate(job))


def begin(budget: Budget | None = None) -> tuple[Progress, TrialStarted]:
    one = order(Path("unused"), budget=budget)
    start = TrialStarted(trial=one.spec, starter=one.starter, environment={}, heldout_commitment="c" * 64)
    return waiting(one.spec), start


def after(*events: Event, budget: Budget | None = None) -> Progress:
    progress, start = begin(budget)
    for event in (start, *events):
        progress = advance(progress, event)
    return progress


def finished(reason: str = "method ended") -> TrialFinished:
    return TrialFinished(reason=reason, champion="x", spent=Spent(evaluations=6))


def test_a_trial_waits_until_it_has_a_ledger() -> None:
    progress, start = begin()
    assert progress.state is State.WAITING and progress.share() is None
    assert advance(progress, start).state is State.RUNNING


def test_the_best_is_the_first_of_the_fastest() -> None:
    progress = after(judged(0, "1.0"), judged(1, "1.5", evaluations=1), judged(2, "1.5", evaluations=2))
    assert progress.starter is not None and abs(progress.starter - 1.0) < 1e-9
    assert progress.best is not None and abs(progress.best - 1.5) < 1e-9
    assert progress.best_number == 1
    assert progress.spent.evaluations == 2 and progress.lines == 4


def test_a_failure_is_never_the_best() -> None:
    progress = after(judged(0, "COMPILE_ERROR"))
    assert progress.starter == 0.0 and progress.best is None


def test_a_finished_trial_has_its_champions_numbers() -> None:
    progress = after(judged(0, "2.0"), MethodEnded(reason="method ended", exit_code=0), measured("2.0"), finished())
    assert progress.state is State.FINISHED and not progress.failed
    assert progress.champion is not None and progress.heldout is not None and progress.champion > 1.9


def test_a_champion_that_fails_makes_a_failed_trial() -> None:
    progress = after(judged(0, "2.0"), measured("INCORRECT_NUMERICAL"), finished())
    assert progress.champion == 0.0 and progress.failed


def test_a_broken_method_makes_a_failed_trial_even_with_a_champion() -> None:
    ended = MethodEnded(reason=FAILED, exit_code=1)
    assert after(judged(0, "2.0"), ended, measured("2.0"), finished(FAILED)).failed


def test_a_killed_method_is_still_searching() -> None:
    assert after(judged(0, "1.0"), MethodEnded(reason=KILLED, exit_code=-9)).state is State.RUNNING


def test_a_suspended_trial_goes_on_when_resumed() -> None:
    suspended = after(judged(0, "1.0"), TrialSuspended(reason="stopped by the user"))
    assert suspended.state is State.SUSPENDED and suspended.failed
    resumed = advance(suspended, TrialResumed(environment={}))
    assert resumed.state is State.RUNNING and resumed.reason == "" and not resumed.failed


def test_the_share_is_that_of_the_budget_which_ends_first() -> None:
    budget = Budget(evaluations=10, tokens=100)
    half = after(judged(1, "1.0", evaluations=1, usage=Usage(input=50).model_dump()), budget=budget)
    assert half.share() == 0.5
    more = advance(half, ModelRequested(call=1, request="r", reserved_tokens=10))
    assert more.share() == 0.5
    assert after(finished(), budget=budget).share() == 1.0
