"""The first Ctrl-C or SIGTERM asks a race to stop in order, the second ends everything at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType

import psutil

from ray_cluster.console import Exit, say

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Signal handlers for as long as a `with` block; `stopping` is set by the first signal."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._before = {number: signal.getsignal(number) for number in SIGNALS}

    def __enter__(self) -> Interrupts:
        self.install()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def install(self) -> None:
        """Also to be called after something else (Ray does) has put its own handlers there."""
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.stopping.is_set():
            _end_everything()
        self.stopping.set()
        say("stopping: trials finish the evaluations under way (again to end at once)")


def _end_everything() -> None:
    """No cleaning up: the ledgers are safe at any moment, and nothing of ours may be left running."""
    for process in psutil.Process().children(recursive=True):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    os._exit(Exit.INTERRUPTED)
