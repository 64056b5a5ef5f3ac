"""Fetches what records leave in the ledger: sources, logs, prompts and replies, one line of the file at a time."""

from __future__ import annotations

from leaderboard.records import Attempt, Call, TrialRecord
from suite import ledger
from suite.errors import LedgerError
from suite.events import Evaluated, ModelCalled


def judged(trial: TrialRecord, attempt: Attempt) -> Evaluated:
    """The candidate's source and verdict. Raises `LedgerError` if the line is not what was read before."""
    event = ledger.read_line(trial.ledger, attempt.line).event
    if isinstance(event, Evaluated) and event.evaluation.candidate == attempt.id:
        return event
    raise _changed(trial, attempt.line)


def asked(trial: TrialRecord, call: Call) -> ModelCalled | None:
    """Prompt and reply, None for a call without one. Raises `LedgerError` if the line is not what was read before."""
    if call.line is None:
        return None
    event = ledger.read_line(trial.ledger, call.line).event
    if isinstance(event, ModelCalled) and event.call == call.number:
        return event
    raise _changed(trial, call.line)


def _changed(trial: TrialRecord, line: int) -> LedgerError:
    return LedgerError(
        f"line {line + 1} of {trial.ledger} is another than when it was read",
        "a ledger that only grows",
        "reload the page; if that does not help, start the board again",
    )
