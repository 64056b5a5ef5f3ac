"""What the tests of pages and figures share."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard.reading import load
from leaderboard.records import TrialRecord
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty runs folder that the pages read."""
    monkeypatch.setenv("DERBY_RUNS", str(tmp_path))
    monkeypatch.setenv("DERBY_TASKS", str(Path(__file__).parents[2] / "tasks"))
    return tmp_path


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrialRecord, ...]:
    """A small edition, one of its champions failed."""
    runs = tmp_path_factory.mktemp("runs")
    for plan in (*canned.demo(1), Plan("best_of_n", 9, champion=Status.TIMEOUT)):
        canned.write(runs, plan)
    return load(runs)
