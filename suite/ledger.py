"""The truth about a trial: an append-only, hash-chained file of JSON lines, and the fenced views that are told of them."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from pydantic import JsonValue, ValidationError

from suite.errors import LedgerError
from suite.events import EVENT, Event, Recorder, TrialStarted
from suite.types import Frozen
from suite.views import Views

VERSION = 1
"""Of the line format; a reader refuses lines of a later version."""

GENESIS = "0" * 64
"""What stands for the hash before the first line."""


class Entry(Frozen):
    """One line: `seq` from 0, `time` in ISO 8601 UTC, `prev` the hash of the line before, `hash` over all the rest."""

    version: int = VERSION
    seq: int
    time: str
    event: Event
    prev: str
    hash: str


class Ledger:
    """The one writer of a trial's file. Not thread-safe: its owner serialises `append`."""

    @classmethod
    def open(cls, path: Path, views: Sequence[Recorder] = (), wait_s: float = 30.0) -> Ledger:
        """Lock the file, set a torn last line aside, verify the chain, tell the views of every line so far.

        Waits up to `wait_s` for a dying predecessor's lock. Raises `LedgerError` if it is held longer or if the file is
        not what was written.
        """
        raise NotImplementedError

    @property
    def entries(self) -> tuple[Entry, ...]:
        raise NotImplementedError

    def append(self, event: Event) -> Entry:
        """Write one line and fsync it; when this returns the event has happened."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def read(path: Path) -> list[Entry]:
    """All complete lines, verified; safe while the file is being written. Raises `LedgerError`."""
    raise NotImplementedError
