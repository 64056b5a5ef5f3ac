"""Lines of a ledger -> the record of its trial, line by line; says which model call a candidate came from. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leaderboard.records import Attempt, Call, CallState, Champion, Mark, State, TrialRecord
from suite import ledger
from suite.events import (
    ChampionMeasured,
    Evaluated,
    MethodEnded,
    ModelCalled,
    ModelRequested,
    Refunded,
    TrialFinished,
    TrialResumed,
    TrialStarted,
    TrialSuspended,
)
from suite.fences import fenced
from suite.ledger import Entry
from suite.score import score
from suite.types import Spent, Split


def begin(path: Path, first: Entry, verified: bool) -> TrialRecord:
    """The record of a trial of which nothing but its first line, a `TrialStarted`, is known."""
    start = first.event
    assert isinstance(start, TrialStarted), "the caller has looked"
    return TrialRecord(
        spec=start.trial,
        ledger=path,
        mark=Mark(0, 0, ledger.GENESIS),
        state=State.RUNNING,
        reason="",
        ended=None,
        attempts=(),
        calls=(),
        champion=None,
        spent=Spent(),
        environment=start.environment,
        heldout_commitment=start.heldout_commitment,
        started=first.time,
        last=first.time,
        verified=verified,
    )


def go_on(record: TrialRecord, entries: Sequence[Entry], mark: Mark) -> TrialRecord:
    """The record after these further lines (one at least); `mark`: where they end."""
    tale = _Tale.of(record)
    for entry in entries:
        tale.take(entry)
    state, reason = _state(entries[-1], tale.ended)
    return replace(
        record,
        mark=mark,
        state=state,
        reason=reason,
        ended=tale.ended,
        attempts=tuple(tale.attempts),
        calls=tuple(tale.calls.values()),
        champion=tale.champion,
        spent=tale.spent,
        last=entries[-1].time,
    )


def _state(last: Entry, ended: str | None) -> tuple[State, str]:
    if isinstance(last.event, TrialFinished):
        return State.FINISHED, last.event.reason
    if isinstance(last.event, TrialSuspended):
        return State.SUSPENDED, last.event.reason
    return State.RUNNING, "searching" if ended is None else f"measuring the champion; {ended}"


@dataclass
class _Tale:
    """A record in the making. `holds`: the last call whose reply has a code block of that digest.

    `since` are the calls answered since the last verdict, `last` is the last call answered.
    """

    attempts: list[Attempt]
    calls: dict[int, Call]
    holds: dict[str, int]
    since: list[int]
    last: int | None
    champion: Champion | None
    spent: Spent
    ended: str | None

    @classmethod
    def of(cls, record: TrialRecord) -> _Tale:
        line = record.attempts[-1].line if record.attempts else -1
        answered = [call for call in record.calls if call.line is not None]
        return cls(
            attempts=list(record.attempts),
            calls={call.number: call for call in record.calls},
            holds={block: call.number for call in record.calls for block in call.blocks},
            since=[call.number for call in answered if (call.line or 0) > line],
            last=max(answered, key=lambda call: call.line or 0).number if answered else None,
            champion=record.champion,
            spent=record.spent,
            ended=record.ended,
        )

    def take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, Evaluated | ModelCalled | Refunded | TrialFinished):
            self.spent = event.spent
        match event:
            case ModelRequested():
                self.calls[event.call] = Call(event.call, CallState.OPEN, entry.time)
            case ModelCalled():
                self._answered(entry, event)
            case Refunded(what="model_call"):
                self._failed(event, entry.time)
            case Evaluated():
                self.attempts.append(self._attempt(entry, event))
                self.since = []
            case MethodEnded():
                self.ended = event.reason
                self._lose_open_calls()
            case TrialResumed():
                self._lose_open_calls()
            case ChampionMeasured():
                evaluation = event.evaluation
                heldout, search = score(evaluation, Split.HELDOUT), score(evaluation, Split.SEARCH)
                self.champion = Champion(event.candidate, evaluation, heldout, search, entry.time)
            case _:
                pass

    def _answered(self, entry: Entry, event: ModelCalled) -> None:
        call = Call(
            number=event.call,
            state=CallState.ANSWERED,
            time=entry.time,
            line=entry.seq,
            usage=event.usage,
            usd=event.usd,
            seconds=event.seconds,
            waited_s=event.waited_s,
            finish_reason=event.finish_reason,
            note=event.note,
            is_bound=event.usage_is_bound,
            chars=(sum(len(message.content) for message in event.messages), len(event.reply)),
            blocks=tuple(_digest(block.text) for block in fenced(event.reply)),
        )
        self.calls[event.call] = call
        self.holds.update(dict.fromkeys((*call.blocks, _digest(event.reply)), event.call))
        self.since.append(event.call)
        self.last = event.call

    def _failed(self, event: Refunded, time: str) -> None:
        if event.subject.isdecimal():
            number = int(event.subject)
            self.calls[number] = Call(number, CallState.FAILED, time, reason=event.reason)

    def _lose_open_calls(self) -> None:
        """Whoever was waiting for them has died; what they had reserved stays charged."""
        for number, call in self.calls.items():
            if call.state is CallState.OPEN:
                self.calls[number] = replace(call, state=CallState.LOST)

    def _attempt(self, entry: Entry, event: Evaluated) -> Attempt:
        points = score(event.evaluation, Split.SEARCH)
        holder = self.holds.get(_digest(event.candidate.text())) if event.number else None
        return Attempt(
            line=entry.seq,
            number=event.number,
            id=event.evaluation.candidate,
            parent=event.parent,
            note=event.note,
            status=event.evaluation.status,
            failure=event.evaluation.failure,
            score=points,
            best=max(points.value, self.attempts[-1].best if self.attempts else 0.0),
            spent=event.spent,
            predicted=event.predicted,
            origin=holder or (self.last if event.number else None),
            by_source=holder is not None,
            calls=tuple(self.since) if event.number else (),
            busy=event.evaluation.busy,
            time=entry.time,
        )


def _digest(text: str) -> str:
    """Of a code block or a file; blank ends do not count, since methods trim differently."""
    return hashlib.sha256(text.strip().encode(errors="replace")).hexdigest()[:16]
