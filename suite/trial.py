"""One trial from its starter to the re-measured champion; killed anywhere and run again, it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Literal

from suite import environment
from suite.bench import TrialBench, TrialOrder
from suite.desk import Suspended
from suite.errors import LedgerError, MethodError
from suite.evaluator import Evaluator
from suite.events import (
    ChampionMeasured,
    MethodEnded,
    Recorder,
    TrialFinished,
    TrialResumed,
    TrialStarted,
    TrialSuspended,
)
from suite.gateway import serve
from suite.launch import MethodProcess
from suite.ledger import Ledger
from suite.types import Job, Status, Tier
from suite.workbench import Model

__all__ = ["Outcome", "TrialOrder", "run_trial"]

Outcome = Literal["finished", "suspended"]

ENDED, FAILED, STALLED = "method ended", "method failed", "method stalled"
STOPPED, SUSPENDED, KILLED = "stopped", "suspended", "killed"
UNFINISHED = frozenset({STOPPED, SUSPENDED, KILLED})
"""Endings after which the method is started again; every other one is the end of the search."""

LIVES = 3
"""Deaths by a signal from outside, without a new verdict or reply in between, that make it the method's own failure."""

NOTICE_S = 5.0
"""A method has this long to take note of a spent budget."""

PATIENCE_S = 30.0
"""How long a stop waits for work under way."""

POLL_S = 0.2

BUDGETS = {
    "evaluations": "budget of evaluations spent",
    "tokens": "budget of tokens spent",
    "usd": "budget of US dollars spent",
    "wall_s": "budget of time spent",
    "repeats": "20 repeated candidates in a row",
    "calls": "500 model calls in a row without a candidate",
}


def run_trial(
    order: TrialOrder,
    evaluator: Evaluator,
    model: Model | None,
    stop: threading.Event,
    views: Sequence[Recorder] = (),
) -> Outcome:
    """Run the trial, or go on with it, until it is finished or suspended; why stands in the ledger's last line.

    A finished trial returns at once. `stop` suspends it after the work under way. Raises `LedgerError` if the ledger is
    damaged, of another trial or held by another process, `MethodError` if the method needs a model and there is none.
    """
    method = order.spec.method
    if method.uses_model and (model is None or order.spec.model is None):
        raise MethodError(
            f"the method {method.name} asks a model, but the trial has none",
            "a model, or a method that needs none",
            "name a model on the race card",
        )
    with Ledger.open(order.folder / "ledger.jsonl", views) as ledger:
        if ledger.entries and isinstance(ledger.entries[-1].event, TrialFinished):
            return "finished"
        _begin(order, ledger)
        bench = TrialBench.over(order, ledger, evaluator, model, stop)
        try:
            _judge_starter(bench)
            reason = _search(order, ledger, bench, stop)
            _finish(order, ledger, bench, reason)
        except Suspended as why:
            ledger.append(TrialSuspended(reason=why.reason))
            return "suspended"
        return "finished"


def _begin(order: TrialOrder, ledger: Ledger) -> None:
    if not ledger.entries:
        ledger.append(
            TrialStarted(
                trial=order.spec,
                starter=order.starter,
                environment=environment.describe(),
                heldout_commitment=order.heldout_commitment,
            )
        )
        return
    first = ledger.entries[0].event
    if not isinstance(first, TrialStarted) or first.trial != order.spec or first.starter != order.starter:
        raise LedgerError(
            f"{ledger.path} belongs to another trial", f"the ledger of {order.spec.id}", "move that folder away"
        )
    if first.heldout_commitment != order.heldout_commitment:
        raise LedgerError(
            f"{ledger.path} was begun with another held-out seed",
            "the seed whose hash it states",
            "restore the race's secret, or move the trial's folder away to start it anew",
        )
    ledger.append(TrialResumed(environment=environment.describe()))


def _judge_starter(bench: TrialBench) -> None:
    verdict = bench.judge_starter().evaluation
    if verdict.status != Status.PASSED:
        detail = verdict.failure.detail if verdict.failure else ""
        raise Suspended(
            f"the task's starter does not pass: {verdict.status} {detail}\n"
            "  expected: a starter that passes its own task\n"
            "  do: judge it by hand with `derby check`, then mend the task"
        )


# ---------------------------------------------------------------------------------------------- the search


def _search(order: TrialOrder, ledger: Ledger, bench: TrialBench, stop: threading.Event) -> str:
    """Let the method search; returns why that ended. Raises `Suspended`."""
    ends = [entry.event for entry in ledger.entries if isinstance(entry.event, MethodEnded)]
    if ends and ends[-1].reason not in UNFINISHED:
        return ends[-1].reason
    lives = LIVES
    while True:
        before = len(ledger.entries)
        end = _life(order, bench, stop)
        lives = LIVES if len(ledger.entries) > before else lives
        if end.reason == KILLED:
            lives -= 1
            if lives == 0:
                end = end.model_copy(update={"reason": FAILED})
        ledger.append(end)
        if end.reason in (STOPPED, SUSPENDED):
            raise Suspended(bench.desk.suspended or "stopped by the user")
        if end.reason != KILLED:
            return end.reason


def _life(order: TrialOrder, bench: TrialBench, stop: threading.Event) -> MethodEnded:
    """One start of the method, to its end."""
    with serve(bench) as door:
        bench.start()
        process = MethodProcess(order.spec.method, order.spec.seed, order.folder, door)
        try:
            _follow(process, bench, stop, order.stall_s)
        finally:
            code = process.end()
            bench.end(PATIENCE_S)
    if bench.desk.crash is not None:
        raise bench.desk.crash
    reason, spent = _reason(bench, stop, code), bench.desk.meter.spent
    return MethodEnded(reason=reason, exit_code=code, log=process.tail(), spent=spent)


def _follow(process: MethodProcess, bench: TrialBench, stop: threading.Event, stall_s: float) -> None:
    """Until the method ends or is to be ended: stopped, suspended, stalled, or its budget spent and that long known."""
    desk, deadline = bench.desk, None
    answers, quiet_s = desk.answers, 0.0
    while not process.wait(POLL_S):
        # In turns of this loop, not by the clock: time in which the whole machine stood still is not the method's.
        quiet_s = 0.0 if desk.busy or desk.answers > answers else quiet_s + POLL_S
        answers, desk.stalled = desk.answers, quiet_s > stall_s
        if stop.is_set() or desk.stalled or desk.suspended is not None or desk.crash is not None:
            return
        if desk.meter.left().wall_s == 0:
            desk.exhausted = desk.exhausted or "wall_s"
        if desk.exhausted is not None:
            deadline = deadline or time.monotonic() + NOTICE_S
            if time.monotonic() > deadline:
                return


def _reason(bench: TrialBench, stop: threading.Event, code: int) -> str:
    if bench.desk.suspended is not None:
        return SUSPENDED
    if bench.desk.exhausted is not None:
        return BUDGETS[bench.desk.exhausted]
    if stop.is_set():
        return STOPPED
    if bench.desk.stalled:
        return STALLED
    if code == 0:
        return ENDED
    return KILLED if code in (-9, 128 + 9) else FAILED


# ---------------------------------------------------------------------------------------------- the champion


def _finish(order: TrialOrder, ledger: Ledger, bench: TrialBench, reason: str) -> None:
    """Measure the champion anew, outside the budget. Raises `Suspended`."""
    champion = bench.desk.memory.champion()
    measured = any(isinstance(entry.event, ChampionMeasured) for entry in ledger.entries)
    if champion is not None and not measured:
        job = Job(task=order.task, candidate=champion, tier=Tier.CHAMPION, heldout=order.heldout)
        evaluation = bench.measure(job)
        ledger.append(ChampionMeasured(candidate=champion.id, heldout=order.heldout, evaluation=evaluation))
    ledger.append(
        TrialFinished(reason=reason, champion=champion.id if champion else None, spent=bench.desk.meter.spent)
    )
