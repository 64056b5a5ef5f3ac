"""Ledgers on disk -> trial records, the one thing standings, charts and pages are made from.

Reading never fails as a whole: a ledger that cannot be trusted becomes a `Notice` beside the records of the others.
A ledger that has grown is read on from where the reading before stopped, so that a page may follow a long trial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from leaderboard.records import Mark, TrialRecord
from leaderboard.telling import begin, go_on
from suite import ledger
from suite.errors import LedgerError
from suite.events import TrialStarted

LEDGERS = "*/trials/*/ledger.jsonl"
IMPORTED = "imported"
"""A race folder that holds a file of this name came from another installation: its numbers are claims."""


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
    """Trials and notices of a runs folder (a missing or empty folder holds none); `read` may be a caching reader."""
    found = [(read or read_trial)(path) for path in sorted(runs.glob(LEDGERS))]
    trials = sorted((item for item in found if isinstance(item, TrialRecord)), key=lambda item: (item.started, item.id))
    return Survey(tuple(trials), tuple(item for item in found if isinstance(item, Notice)))


def read_trial(path: Path, before: TrialRecord | None = None) -> TrialRecord | Notice | None:
    """One ledger; None while it is still empty. `before`: its record by an earlier reading, from which to go on."""
    try:
        return _read(path, before)
    except LedgerError as error:
        if before:  # it may be another file by now: judged as a whole
            return read_trial(path)
        return Notice(path, error.came, error.expected, error.todo)


def _read(path: Path, before: TrialRecord | None) -> TrialRecord | None:
    seen = before.mark if before else Mark(0, 0, ledger.GENESIS)
    entries, offset = ledger.read_on(path, seen.offset, seen.lines, seen.hash)
    if not entries:
        return before
    mark = Mark(offset, seen.lines + len(entries), entries[-1].hash)
    if before:
        return go_on(before, entries, mark)
    if not isinstance(entries[0].event, TrialStarted):
        raise LedgerError(
            f"the first line of {path} is {entries[0].event.kind!r}",
            "'trial_started'",
            "set the folder aside and race it again",
        )
    verified = not (path.parent.parent.parent / IMPORTED).exists()
    return go_on(begin(path, entries[0], verified), entries, mark)
