"""What the tests of pages share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty runs folder that the pages read."""
    monkeypatch.setenv("DERBY_RUNS", str(tmp_path))
    monkeypatch.setenv("DERBY_TASKS", str(Path(__file__).parents[2] / "tasks"))
    return tmp_path
