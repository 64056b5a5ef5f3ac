"""What the pages read: the runs folder and its ledgers, of each only what it has grown by; and the tasks' folder."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import streamlit as st

from leaderboard.reading import Notice, Survey, read_trial, survey
from leaderboard.records import TrialRecord


def runs_folder() -> Path:
    """`DERBY_RUNS`, or `runs` in the current folder."""
    return Path(os.environ.get("DERBY_RUNS", "runs")).resolve()


def tasks_folder() -> Path:
    """`DERBY_TASKS`, or `tasks` in the current folder: where the sources of baselines lie, if anywhere."""
    return Path(os.environ.get("DERBY_TASKS", "tasks")).resolve()


def current() -> Survey:
    """All trials as they stand now."""
    return survey(runs_folder(), _read)


def _read(path: Path) -> TrialRecord | Notice | None:
    try:
        seen = path.stat()
    except OSError:
        return read_trial(path)  # which says why it cannot be read
    return _follower(str(path), seen.st_ino).read(seen.st_size, seen.st_mtime_ns)


class _Follower:
    """One ledger as last read; shared by all sessions, since records are frozen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen = (-1, -1)
        self._found: TrialRecord | Notice | None = None

    def read(self, size: int, mtime_ns: int) -> TrialRecord | Notice | None:
        with self._lock:
            if (size, mtime_ns) != self._seen:
                # A file that was written to and has not grown was edited: it is verified from its start.
                grown = size > self._seen[0]
                before = self._found if grown and isinstance(self._found, TrialRecord) else None
                self._found = read_trial(self._path, before)
                self._seen = (size, mtime_ns)
            return self._found


@st.cache_resource(max_entries=4096, show_spinner=False)
def _follower(path: str, inode: int) -> _Follower:
    return _Follower(Path(path))
