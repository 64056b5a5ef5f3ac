"""Follows the ledgers of a race while it runs: a live table or plain lines on stderr, and a fenced feed of views."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError
from rich.console import Console
from rich.live import Live
from rich.markup import escape

from ray_cluster.progress import Progress, State, advance, waiting
from ray_cluster.race_folder import RaceFolder
from ray_cluster.tables import progress_table, progress_words
from suite.events import Evaluated, Event, Recorder
from suite.ledger import Entry
from suite.types import TrialSpec
from suite.views import Views

BEAT_S = 0.5


class Tail:
    """Reads what a ledger has gained since the last look. Trusts the writer: the chain is verified by who opens it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new(self) -> list[Entry]:
        """The lines that are complete since the last call; a line being written waits for the next one."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []  # not there yet, or not to be read: the trial that opens it says what is wrong
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        return [entry for raw in data[:whole].splitlines() if (entry := _entry(raw)) is not None]


def _entry(raw: bytes) -> Entry | None:
    try:
        return Entry.model_validate_json(raw)
    except ValidationError:
        return None  # the trial that opens this ledger says what is wrong with it


@dataclass(frozen=True)
class Line:
    """A ledger's line as the follower passes it on."""

    trial: str
    seq: int
    event: Event


class Standing:
    """The progress of all trials of a race, brought up to date from their ledgers."""

    def __init__(self, folder: RaceFolder, specs: Sequence[TrialSpec]) -> None:
        self._tails = {spec.id: Tail(folder.ledger(spec.id)) for spec in specs}
        self.trials = {spec.id: waiting(spec) for spec in specs}

    def update(self) -> list[Line]:
        """Take in what is new; returns it in order of trials."""
        lines = []
        for trial, tail in self._tails.items():
            for entry in tail.new():
                self.trials[trial] = advance(self.trials[trial], entry.event)
                lines.append(Line(trial, entry.seq, entry.event))
        return lines

    @property
    def rows(self) -> tuple[Progress, ...]:
        return tuple(self.trials.values())


class Follower:
    """A thread that shows and passes on a race's progress for as long as a `with` block.

    `views` are fed behind `Views`, in a thread of its own: a slow or failing one holds up neither race nor table.
    """

    def __init__(
        self,
        standing: Standing,
        console: Console,
        views: Sequence[Recorder] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._standing = standing
        self._console = console
        self._views = Views(views)
        self._clock = clock
        self._began = clock()
        for line in standing.update():  # what earlier runs wrote: views must know it, nobody needs to read it again
            self._views.tell(line.trial, line.seq, line.event)
        self._already = {trial.trial: trial.share() or 0.0 for trial in standing.rows}
        self._done = threading.Event()
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def __enter__(self) -> Follower:
        if self._live is not None:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        if self._live is not None:
            self._live.stop()
        self._views.close()

    def _run(self) -> None:
        while not self._done.wait(BEAT_S):
            self._beat()
        self._beat()

    def _beat(self) -> None:
        before = dict(self._standing.trials)
        for line in self._standing.update():
            self._views.tell(line.trial, line.seq, line.event)
            if self._live is None:
                before[line.trial] = self._say(before[line.trial], line)
        if self._live is not None:
            self._live.update(progress_table(self._standing.rows, self.elapsed_s, self.eta_s()), refresh=True)

    def _say(self, before: Progress, line: Line) -> Progress:
        """Off a terminal: one plain line an event that moves a trial."""
        after = advance(before, line.event)
        if isinstance(line.event, Evaluated) or after.state != before.state:
            self._console.print(escape(progress_words(after, line.event)), soft_wrap=True)
        return after

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began

    def eta_s(self) -> float | None:
        """Seconds to go if the budgets left are used as fast as those so far; None before there is a rate."""
        open_trials = [trial for trial in self._standing.rows if trial.state is not State.SUSPENDED]
        gained = sum((trial.share() or 0.0) - self._already[trial.trial] for trial in open_trials)
        rest = sum(1.0 - (trial.share() or 0.0) for trial in open_trials)
        return rest * self.elapsed_s / gained if gained > 0.02 else None
