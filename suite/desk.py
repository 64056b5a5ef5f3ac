"""What all paid calls of a trial share: ledger, meter and memory under one lock, lanes, and how the trial stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from suite.errors import BudgetExhausted, ModelError, Stopped
from suite.events import Event, ModelRequested, Refunded
from suite.ledger import Ledger
from suite.memory import Memory
from suite.meter import Meter

ATTEMPTS = 3
"""Failures of ours in a row that suspend a trial."""

PAUSE_S = 0.25
"""Before the first repetition; doubled each time."""

POLL_S = 0.1


class Suspended(Stopped):
    """The trial can not go on now; `reason` is for its ledger."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Desk:
    """Thread-safe. `lock` makes charging and recording one step, so that every line's `spent` fits its place."""

    def __init__(self, ledger: Ledger, meter: Meter, memory: Memory, lanes: int, stop: threading.Event) -> None:
        self.meter, self.memory = meter, memory
        self.lock = threading.RLock()
        self.exhausted: str | None = None
        """The first budget for which a call was refused."""
        self.suspended: str | None = None
        """Why the trial can not go on now."""
        self.stalled = False
        """Whether the method was ended since it asked for nothing."""
        self.answers = 0
        """Evaluations and model calls that were answered."""
        self.crash: BaseException | None = None
        """An error within a call that is neither the method's nor the candidate's nor foreseen."""
        requested = [entry.event.call for entry in ledger.entries if isinstance(entry.event, ModelRequested)]
        self.last_call = max(requested, default=0)
        """The highest number of a model call in the ledger."""
        self._ledger, self._stop = ledger, stop
        self._idle = threading.Condition(self.lock)
        self._lanes = threading.BoundedSemaphore(lanes)
        self._busy = 0
        self._closed = self._abandoned = False

    def check_recordable(self) -> None:
        """Raises `Stopped` once the trial has given up waiting for this call."""
        if self._abandoned:
            raise Stopped("the trial has ended")

    def record(self, event: Event) -> None:
        """Append to the ledger and remember. Raises `Stopped` as `check_recordable` does."""
        with self.lock:
            self.check_recordable()
            self._ledger.append(event)
            self.memory.take(event)

    def refund(self, what: Literal["evaluation", "model_call"], subject: str, reason: str, attempt: int) -> None:
        """Record a failure of ours and pause before the next attempt; raises `Suspended` after the last."""
        with self.lock:
            self.meter.count_refund()
            self.record(Refunded(what=what, subject=subject, reason=reason, attempt=attempt, spent=self.meter.spent))
        if attempt >= ATTEMPTS:
            self.suspend(f"{attempt} failures of ours in a row, the last: {reason}")
        self._stop.wait(PAUSE_S * 2 ** (attempt - 1))

    def suspend(self, reason: str) -> None:
        """The trial can not go on now. Raises `Suspended`."""
        self.suspended = self.suspended or reason
        raise Suspended(reason)

    def check_open(self) -> None:
        """Raises `Suspended` or `Stopped` when no more work is to be begun."""
        if self.suspended is not None:
            raise Suspended(self.suspended)
        if self._stop.is_set():
            raise Suspended("stopped by the user")
        if self._closed:
            raise Stopped("the trial has ended")

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Notes how a call ended, for the trial to see."""
        try:
            yield
            self.answers += 1
        except BudgetExhausted as refusal:
            self.exhausted = self.exhausted or refusal.kind
            raise
        except (Stopped, ModelError):
            raise
        except BaseException as error:
            self.crash = self.crash or error
            raise

    @contextmanager
    def lane(self) -> Iterator[None]:
        """One of the lanes in which paid work is done; waits for a free one.

        Raises `Stopped` or `BudgetExhausted` when nothing more may be begun by the time there is one.
        """
        with self.lock:
            self.check_open()  # in one step with counting it, so that `drain` either sees this call or has refused it
            self._busy += 1
        try:
            while not self._lanes.acquire(timeout=POLL_S):
                self.check_open()
            try:
                self.check_open()
                self.meter.check_wall()
                yield
            finally:
                self._lanes.release()
        finally:
            with self.lock:
                self._busy -= 1
                self._idle.notify_all()

    @property
    def busy(self) -> bool:
        """Whether paid calls are under way."""
        with self.lock:
            return self._busy > 0

    def drain(self, patience_s: float) -> None:
        """Take no further call; wait for those under way: to their end, or `patience_s` once the user wants to stop."""
        with self.lock:
            self._closed = True
            since: float | None = None
            while self._busy and not self._abandoned:
                self._idle.wait(POLL_S)
                if self._stop.is_set():
                    since = since or time.monotonic()
                    self._abandoned = time.monotonic() - since > patience_s

    def start(self) -> None:
        """A method starts, perhaps over: what is recorded will be replayed to it."""
        with self.lock:
            self._closed = False
            self.memory.rewind()
            self.meter.start()
