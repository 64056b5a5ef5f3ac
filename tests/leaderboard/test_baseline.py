"""A baseline is shown only if it is the one that was raced."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard import baseline
from suite import task
from suite.types import TrialSpec
from tests.leaderboard import canned
from tests.leaderboard.canned import TASK, Plan

TASKS = Path(__file__).parents[2] / "tasks"


def spec(digest: str, **changes: object) -> TrialSpec:
    return canned.trial_spec(Plan(task_digest=digest)).model_copy(update=changes)


@pytest.fixture(scope="module")
def digest() -> str:
    return task.load(TASKS / TASK).digest


def test_the_raced_tasks_baseline_is_found(digest: str) -> None:
    found = baseline.find(TASKS, spec(digest))
    assert not isinstance(found, str) and found == task.baseline(task.load(TASKS / TASK))


def test_another_digest_is_said_and_not_shown() -> None:
    found = baseline.find(TASKS, spec("f" * 64))
    assert isinstance(found, str) and "f" * 16 in found and "revision" in found


def test_a_lane_the_task_lacks_is_said(digest: str) -> None:
    found = baseline.find(TASKS, spec(digest, lane="no-such-lane"))
    assert isinstance(found, str) and "no-such-lane" in found


@pytest.mark.parametrize("name", ["../tasks/" + TASK, "/", "no_such_task", ""])
def test_a_name_out_of_a_ledger_leads_nowhere_else(digest: str, name: str) -> None:
    assert isinstance(baseline.find(TASKS, spec(digest, task=name)), str)


def test_without_the_tasks_folder_it_says_what_to_do(digest: str, tmp_path: Path) -> None:
    found = baseline.find(tmp_path / "none", spec(digest))
    assert isinstance(found, str) and "derby board" in found
