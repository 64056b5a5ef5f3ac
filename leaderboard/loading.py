"""What the pages read: the runs folder and its ledgers, each ledger parsed again only when it has grown."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from leaderboard.records import Notice, Survey, TrialRecord, read_trial, survey


def runs_folder() -> Path:
    """`DERBY_RUNS`, or `runs` in the current folder."""
    return Path(os.environ.get("DERBY_RUNS", "runs")).resolve()


def current() -> Survey:
    """All trials as they stand now."""
    return survey(runs_folder(), _read)


def _read(path: Path) -> TrialRecord | Notice | None:
    try:
        seen = path.stat()
    except OSError:
        return read_trial(path)  # which says why it cannot be read
    return _parsed(str(path), seen.st_size, seen.st_mtime_ns)


@st.cache_resource(max_entries=4096, show_spinner="Reading ledgers …")
def _parsed(path: str, size: int, mtime_ns: int) -> TrialRecord | Notice | None:
    # Size and time are the key: records are frozen, so that all sessions may share one.
    return read_trial(Path(path))
