"""Where a trial stands: a pure fold over the events of its ledger, shared by the live table, status and dry runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from suite.events import (
    ChampionMeasured,
    Evaluated,
    Event,
    MethodEnded,
    ModelCalled,
    ModelRequested,
    Refunded,
    TrialFinished,
    TrialResumed,
    TrialStarted,
    TrialSuspended,
)
from suite.score import score
from suite.trial import FAILED, UNFINISHED
from suite.types import Budget, Spent, Split, TrialSpec


class State(StrEnum):
    WAITING = "waiting"  # no ledger yet
    RUNNING = "running"
    MEASURING = "measuring"  # the method is done, its champion is being re-measured
    SUSPENDED = "suspended"  # stopped or given up by us; the same command goes on with it
    FINISHED = "finished"


@dataclass(frozen=True)
class Progress:
    """A trial's standing after some prefix of its ledger. Speedups are over the baseline; 0 is a failure."""

    trial: str
    method: str
    task: str
    seed: int
    budget: Budget
    state: State = State.WAITING
    lines: int = 0
    spent: Spent = field(default_factory=Spent)
    starter: float | None = None
    best: float | None = None
    best_number: int | None = None
    champion: float | None = None
    heldout: float | None = None
    reason: str = ""

    @property
    def failed(self) -> bool:
        """The trial ended without a ranked kernel, or its method broke."""
        finished = self.state is State.FINISHED
        return self.state is State.SUSPENDED or (finished and (self.reason == FAILED or not self.champion))

    def share(self) -> float | None:
        """How much of the budget that runs out first is used, 0 to 1; None before anything happened."""
        if self.state is State.WAITING:
            return None
        if self.state in (State.MEASURING, State.FINISHED):
            return 1.0
        used = (
            (self.spent.evaluations, self.budget.evaluations),
            (self.spent.usage.total + self.spent.unconfirmed_tokens, self.budget.tokens),
            (self.spent.usd, self.budget.usd),
            (self.spent.wall_s, self.budget.wall_s),
        )
        return min(1.0, max(amount / limit for amount, limit in used if amount is not None and limit is not None))


def waiting(spec: TrialSpec) -> Progress:
    """The standing of a trial that has no ledger yet."""
    return Progress(spec.id, spec.method.name, spec.task, spec.seed, spec.budget)


def advance(progress: Progress, event: Event) -> Progress:
    """The standing after one more event."""
    after = replace(progress, lines=progress.lines + 1)
    match event:
        case TrialStarted() | TrialResumed():
            return replace(after, state=State.RUNNING, reason="")
        case Evaluated():
            return _evaluated(after, event)
        case ModelCalled() | Refunded():
            return replace(after, spent=event.spent)
        case ModelRequested():
            return after
        case MethodEnded():
            again = event.reason in UNFINISHED
            return replace(after, state=after.state if again else State.MEASURING, reason=event.reason)
        case ChampionMeasured():
            search, heldout = (score(event.evaluation, split).value for split in (Split.SEARCH, Split.HELDOUT))
            # One measurement: a candidate that failed on either split is worth 0 on both.
            return replace(after, champion=search, heldout=heldout)
        case TrialSuspended():
            return replace(after, state=State.SUSPENDED, reason=event.reason)
        case TrialFinished():
            return replace(after, state=State.FINISHED, reason=event.reason, spent=event.spent)
        case _ as never:
            assert_never(never)


def _evaluated(progress: Progress, event: Evaluated) -> Progress:
    value = score(event.evaluation).value
    after = replace(progress, spent=event.spent, state=State.RUNNING)
    if event.number == 0:
        after = replace(after, starter=value)
    if value > (after.best or 0.0):
        after = replace(after, best=value, best_number=event.number)
    return after
