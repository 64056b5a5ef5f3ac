"""The truth about a trial: an append-only, hash-chained file of JSON lines, with fenced views told of each."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import TracebackType

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


def _digest(line: dict[str, JsonValue]) -> str:
    """SHA-256 (hex) of a line's canonical JSON, its own `hash` left out.

    Infinite and NaN error figures are written as Python's json writes them: a null could not be read back.
    """
    rest = {key: value for key, value in line.items() if key != "hash"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Ledger:
    """The one writer of a trial's file. Not thread-safe: its owner serialises `append`."""

    def __init__(self, path: Path, file: FileIO, entries: list[Entry], views: Views) -> None:
        self.path = path
        self._file = file
        self._entries = entries
        self._views = views
        self._damaged = False
        for entry in entries:
            self._tell(entry)

    @classmethod
    def open(cls, path: Path, views: Sequence[Recorder] = (), wait_s: float = 30.0) -> Ledger:
        """Lock the file, set a torn last line aside, verify the chain, tell the views of every line so far.

        Waits up to `wait_s` for a dying predecessor's lock. Raises `LedgerError` if it is held longer or if the file is
        not what was written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = not path.exists()
            file = FileIO(path, "a+")  # unbuffered: a buffer would write the rest of a failed line when closed
        except OSError as problem:
            raise _failed_write(path, problem.strerror or str(problem)) from problem
        try:
            _lock(file, path, wait_s)
            if new:
                _sync_folder(path.parent)  # else a power cut could lose the whole file, lines and all
            _set_torn_line_aside(file, path)
            file.seek(0)
            entries = _verified(file.read(), path)
        except BaseException:
            file.close()
            raise
        return cls(path, file, entries, Views(views))

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    def append(self, event: Event) -> Entry:
        """Write one line and fsync it: when this returns the event has happened. Raises `LedgerError` if it can not."""
        if self._damaged:
            raise _failed_write(self.path, "an earlier write failed")
        prev = self._entries[-1].hash if self._entries else GENESIS
        line: dict[str, JsonValue] = {
            "version": VERSION,
            "seq": len(self._entries),
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": EVENT.dump_python(event, mode="json"),
            "prev": prev,
        }
        line["hash"] = _digest(line)
        try:
            rest = json.dumps(line, separators=(",", ":")).encode() + b"\n"
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as problem:
            # Part of the line may be on disk: nothing may follow it until the next opening has set it aside.
            self._damaged = True
            raise _failed_write(self.path, str(problem)) from problem
        entry = Entry.model_validate({**line, "event": event})
        self._entries.append(entry)
        self._tell(entry)
        return entry

    def close(self) -> None:
        """Release the lock and let the views catch up."""
        self._file.close()
        self._views.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _tell(self, entry: Entry) -> None:
        first = self._entries[0].event
        trial = first.trial.id if isinstance(first, TrialStarted) else self.path.parent.name
        self._views.tell(trial, entry.seq, entry.event)


def read(path: Path) -> list[Entry]:
    """All complete lines, verified; safe while the file is being written. Raises `LedgerError`."""
    return read_on(path)[0]


def read_on(path: Path, offset: int = 0, seq: int = 0, prev: str = GENESIS) -> tuple[list[Entry], int]:
    """The complete lines from byte `offset` on, verified, and the offset behind them. Raises `LedgerError`.

    The first one must be line `seq` and follow the hash `prev`; what stands before is taken to be known.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except OSError as problem:
        raise _unreadable(path, problem) from None
    return _verified(data, path, seq, prev), offset + data.rfind(b"\n") + 1


def read_line(path: Path, seq: int) -> Entry:
    """Line `seq` alone, checked against its own hash and not against its neighbours. Raises `LedgerError`."""
    try:
        with path.open("rb") as file:
            raw = next(itertools.islice(file, seq, None), b"")
    except OSError as problem:
        raise _unreadable(path, problem) from None
    return _entry(raw, path, seq, prev=None)


def _unreadable(path: Path, problem: OSError) -> LedgerError:
    return LedgerError(f"{path} can not be read: {problem.strerror}", "the ledger of a trial", "check the path")


def _verified(data: bytes, path: Path, seq: int = 0, prev: str = GENESIS) -> list[Entry]:
    """The entries of all terminated lines (the one being written has no newline yet)."""
    entries: list[Entry] = []
    for raw in data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]:
        entries.append(_entry(raw, path, seq + len(entries), entries[-1].hash if entries else prev))
    return entries


def _entry(raw: bytes, path: Path, seq: int, prev: str | None) -> Entry:
    """One line as line `seq` of the file, following the hash `prev` (None: not asked)."""
    where = f"line {seq + 1} of {path}"
    keep = "restore the file from a copy, or move it away to start the trial anew"
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        raise LedgerError(f"{where} is not JSON", "one JSON object a line", keep) from None
    if not isinstance(line, dict) or not isinstance(line.get("version"), int):
        raise LedgerError(f"{where} has no version", "a line written by this program", keep)
    if line["version"] > VERSION:
        raise LedgerError(
            f"{where} has version {line['version']}", f"at most version {VERSION}", "update Kernel Derby to read it"
        )
    if line.get("hash") != _digest(line):
        raise LedgerError(f"{where} was edited: its hash is not that of its content", "the line as written", keep)
    if line.get("seq") != seq or (prev is not None and line.get("prev") != prev):
        raise LedgerError(
            f"{where} does not follow the line before it: lines are missing or reordered", "an unbroken chain", keep
        )
    try:
        return Entry.model_validate(line)
    except ValidationError as problem:
        flaw = problem.errors()[0]
        came = f"{where}: {'.'.join(map(str, flaw['loc']))}: {flaw['msg']}"
        raise LedgerError(came, "events this version knows", "read it with the version that wrote it") from None


def _set_torn_line_aside(file: FileIO, path: Path) -> None:
    """Move what follows the last newline (the writer died within that line) to a sibling file, then cut it off."""
    file.seek(0)
    data = file.read()
    whole = data.rfind(b"\n") + 1
    if whole == len(data):
        return
    with path.with_suffix(".torn").open("ab") as torn:
        torn.write(data[whole:] + b"\n")
    file.truncate(whole)
    os.fsync(file.fileno())


def _lock(file: FileIO, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = _holder(file)
                who = f"process {holder}" if holder else "another process"
                todo = f"wait for it or end it (kill {holder})" if holder else "wait for it or end it"
                raise LedgerError(f"{path} is in use by {who}", "one writer of a trial at a time", todo) from None
            time.sleep(0.05)


def _holder(file: FileIO) -> int | None:
    """Process id of the lock's holder as the kernel lists it, None if it does not say."""
    inode = os.fstat(file.fileno()).st_ino
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for fields in map(str.split, lines):
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}") and int(fields[4]) > 0:
            return int(fields[4])
    return None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed_write(path: Path, reason: str) -> LedgerError:
    return LedgerError(f"{path} can not be written: {reason}", "space and permission", "make room, then run again")
