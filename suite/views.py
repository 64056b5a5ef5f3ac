"""Tells views of a ledger's lines from a thread of its own, behind a fence: no view can slow, stop or fail a trial."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence

from suite.events import Event, Recorder

log = logging.getLogger(__name__)

Line = tuple[str, int, Event]


class Views:
    """Feeds (trial, seq, event) to every view in order; `close` waits a while for the slow ones."""

    def __init__(self, views: Sequence[Recorder]) -> None:
        self._views = tuple(views)
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._failed: set[int] = set()
        self._thread = threading.Thread(target=self._run, name="ledger-views", daemon=True)
        if self._views:
            self._thread.start()

    def tell(self, trial: str, seq: int, event: Event) -> None:
        if self._views:
            self._lines.put((trial, seq, event))

    def close(self, wait_s: float = 30.0) -> None:
        """Let the views catch up, for at most `wait_s` seconds; what they miss they are told at the next opening."""
        if self._views and self._thread.is_alive():
            self._lines.put(None)
            self._thread.join(wait_s)
            if self._thread.is_alive():
                log.warning("a view of the ledger did not catch up within %.0f s; the ledger is complete", wait_s)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            for index, view in enumerate(self._views):
                self._record(index, view, line)

    def _record(self, index: int, view: Recorder, line: Line) -> None:
        try:
            view.record(*line)
        except Exception:  # the fence: whatever a view does, the trial goes on
            if index not in self._failed:
                self._failed.add(index)
                log.warning(
                    "the view %s failed; the trial goes on, further errors are not shown",
                    type(view).__name__,
                    exc_info=True,
                )
