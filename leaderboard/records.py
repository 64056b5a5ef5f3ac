"""Ledgers on disk -> trial records, the one thing standings, charts and pages are made from.

Reading never fails as a whole: a ledger that cannot be trusted becomes a `Notice` beside the records of the others.
A ledger is read again only if it has changed, when the caller passes a caching reader (`Reader`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from suite import ledger
from suite.errors import LedgerError
from suite.events import (
    ChampionMeasured,
    Evaluated,
    MethodEnded,
    ModelCalled,
    Refunded,
    TrialFinished,
    TrialStarted,
    TrialSuspended,
)
from suite.ledger import Entry
from suite.score import Estimate, score
from suite.types import Candidate, Evaluation, Failure, Spent, Split, Status, TrialSpec

LEDGERS = "*/trials/*/ledger.jsonl"
IMPORTED = "imported"
"""A race folder that holds a file of this name came from another installation: its numbers are claims."""


class State(StrEnum):
    RUNNING = "running"
    SUSPENDED = "suspended"
    FINISHED = "finished"


@dataclass(frozen=True)
class Attempt:
    """One judged candidate. `best` is the trial's best score up to here; tokens, usd and wall_s are totals after it."""

    number: int
    id: str
    candidate: Candidate
    parent: str | None
    note: str
    status: Status
    failure: Failure | None
    log: str
    score: Estimate
    best: float
    tokens: int
    usd: float | None
    wall_s: float
    busy: bool
    time: str


@dataclass(frozen=True)
class Champion:
    """The re-measurement of a trial's best candidate; the scores are 0 if it failed there."""

    id: str
    evaluation: Evaluation
    heldout: Estimate
    search: Estimate
    time: str


@dataclass(frozen=True)
class TrialRecord:
    """A trial as its ledger tells it. `head` is the hash of the last line, `verified`: judged by this installation."""

    spec: TrialSpec
    ledger: Path
    head: str
    state: State
    reason: str
    attempts: tuple[Attempt, ...]
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


@dataclass(frozen=True)
class Notice:
    """Why a ledger is not on the board: what came, what was expected, what to do."""

    ledger: Path
    came: str
    expected: str
    todo: str


@dataclass(frozen=True)
class Survey:
    """All that a runs folder holds."""

    trials: tuple[TrialRecord, ...]
    notices: tuple[Notice, ...]

    @property
    def as_of(self) -> str | None:
        """Time of the newest line of all ledgers, ISO-UTC."""
        return max((trial.last for trial in self.trials), default=None)


Reader = Callable[[Path], TrialRecord | Notice | None]


def load(runs: Path) -> tuple[TrialRecord, ...]:
    """The readable trials of a runs folder, in order of their start. `survey` also says what could not be read."""
    return survey(runs).trials


def survey(runs: Path, read: Reader | None = None) -> Survey:
    """Trials and notices of a runs folder (a missing or empty folder holds none)."""
    found = [(read or read_trial)(path) for path in sorted(runs.glob(LEDGERS))]
    trials = sorted((item for item in found if isinstance(item, TrialRecord)), key=lambda item: (item.started, item.id))
    return Survey(tuple(trials), tuple(item for item in found if isinstance(item, Notice)))


def read_trial(path: Path) -> TrialRecord | Notice | None:
    """One ledger; None while it is still empty."""
    try:
        entries = ledger.read(path)
        return _record(path, entries) if entries else None
    except LedgerError as error:
        return Notice(path, error.came, error.expected, error.todo)
    except OSError as error:
        came = f"{path} cannot be read: {error.strerror or error}"
        return Notice(path, came, "a ledger that this user may read", "check the folder's owner and permissions")


def _record(path: Path, entries: Sequence[Entry]) -> TrialRecord:
    start = entries[0].event
    if not isinstance(start, TrialStarted):
        raise LedgerError(
            f"the first line of {path} is {start.kind!r}", "'trial_started'", "set the folder aside and race it again"
        )
    state, reason = _state(entries)
    return TrialRecord(
        spec=start.trial,
        ledger=path,
        head=entries[-1].hash,
        state=state,
        reason=reason,
        attempts=_attempts(entries),
        champion=_champion(entries),
        spent=_spent(entries),
        environment=start.environment,
        heldout_commitment=start.heldout_commitment,
        started=entries[0].time,
        last=entries[-1].time,
        verified=not (path.parent.parent.parent / IMPORTED).exists(),
    )


def _state(entries: Sequence[Entry]) -> tuple[State, str]:
    last = entries[-1].event
    if isinstance(last, TrialFinished):
        return State.FINISHED, last.reason
    if isinstance(last, TrialSuspended):
        return State.SUSPENDED, last.reason
    ended = [entry.event for entry in entries if isinstance(entry.event, MethodEnded)]
    return State.RUNNING, f"measuring the champion; {ended[-1].reason}" if ended else "searching"


def _attempts(entries: Sequence[Entry]) -> tuple[Attempt, ...]:
    attempts: list[Attempt] = []
    best = 0.0
    for entry in entries:
        if not isinstance(entry.event, Evaluated):
            continue
        points = score(entry.event.evaluation, Split.SEARCH)
        best = max(best, points.value)
        attempts.append(_attempt(entry.event, entry.time, points, best))
    return tuple(attempts)


def _attempt(event: Evaluated, time: str, points: Estimate, best: float) -> Attempt:
    return Attempt(
        number=event.number,
        id=event.evaluation.candidate,
        candidate=event.candidate,
        parent=event.parent,
        note=event.note,
        status=event.evaluation.status,
        failure=event.evaluation.failure,
        log=event.evaluation.log,
        score=points,
        best=best,
        tokens=event.spent.usage.total,
        usd=event.spent.usd,
        wall_s=event.spent.wall_s,
        busy=event.evaluation.busy,
        time=time,
    )


def _champion(entries: Sequence[Entry]) -> Champion | None:
    for entry in reversed(entries):
        if isinstance(entry.event, ChampionMeasured):
            evaluation = entry.event.evaluation
            heldout, search = score(evaluation, Split.HELDOUT), score(evaluation, Split.SEARCH)
            return Champion(entry.event.candidate, evaluation, heldout, search, entry.time)
    return None


def _spent(entries: Sequence[Entry]) -> Spent:
    for entry in reversed(entries):
        if isinstance(entry.event, Evaluated | ModelCalled | Refunded | TrialFinished):
            return entry.event.spent
    return Spent()
