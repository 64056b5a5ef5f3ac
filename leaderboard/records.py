"""What the board knows of a trial. Texts are left in the ledger, each named by its line: `texts.py` fetches them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from suite.score import Estimate
from suite.types import Evaluation, Failure, Prediction, Spent, Status, TrialSpec, Usage


class State(StrEnum):
    RUNNING = "running"
    SUSPENDED = "suspended"
    FINISHED = "finished"


@dataclass(frozen=True)
class Attempt:
    """One judged candidate. `best` is the trial's best score up to here, `spent` the totals at its verdict.

    `origin` is the model call it came from; `by_source` tells whether that call's reply holds its source (else it is
    the last one before the verdict). `calls` are all calls answered since the verdict before.
    """

    line: int
    number: int
    id: str
    parent: str | None
    note: str
    status: Status
    failure: Failure | None
    score: Estimate
    best: float
    spent: Spent
    predicted: Prediction | None
    origin: int | None
    by_source: bool
    calls: tuple[int, ...]
    busy: bool
    time: str


class CallState(StrEnum):
    ANSWERED = "answered"
    FAILED = "failed"
    OPEN = "no answer yet"
    LOST = "answer lost"


@dataclass(frozen=True)
class Call:
    """One model call; `line` is the ledger's line of its reply, None without one. `reason`: why it failed.

    `blocks` are digests of the code blocks of the reply, `chars` the lengths of prompt and reply.
    """

    number: int
    state: CallState
    time: str
    line: int | None = None
    usage: Usage = field(default_factory=Usage)
    usd: float | None = None
    seconds: float | None = None
    waited_s: float = 0.0
    finish_reason: str = ""
    note: str = ""
    is_bound: bool = False
    chars: tuple[int, int] = (0, 0)
    blocks: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Champion:
    """The re-measurement of a trial's best candidate; the scores are 0 if it failed there."""

    id: str
    evaluation: Evaluation
    heldout: Estimate
    search: Estimate
    time: str


@dataclass(frozen=True)
class Mark:
    """Where the reading of a ledger stopped: bytes, lines, and the hash of the last one."""

    offset: int
    lines: int
    hash: str


@dataclass(frozen=True)
class TrialRecord:
    """A trial as its ledger tells it. `verified`: judged by this installation. `ended`: why its method is gone."""

    spec: TrialSpec
    ledger: Path
    mark: Mark
    state: State
    reason: str
    ended: str | None
    attempts: tuple[Attempt, ...]
    calls: tuple[Call, ...]
    champion: Champion | None
    spent: Spent
    environment: dict[str, str]
    heldout_commitment: str
    started: str
    last: str
    verified: bool

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def head(self) -> str:
        """Hash of the ledger's last line."""
        return self.mark.hash

    @property
    def starter(self) -> Attempt | None:
        """Evaluation 0, None before it is judged."""
        return next((attempt for attempt in self.attempts if attempt.number == 0), None)

    @property
    def best(self) -> Attempt | None:
        """The best attempt so far by the search-time score (ties: the earliest), None if none has passed."""
        passed = [attempt for attempt in self.attempts if attempt.status == Status.PASSED]
        return max(passed, key=lambda attempt: attempt.score.value, default=None)

    @property
    def busy(self) -> bool:
        """The machine was busy while the champion (or, before there is one, the best attempt) was timed."""
        if self.champion is not None:
            return self.champion.evaluation.busy
        return self.best is not None and self.best.busy
