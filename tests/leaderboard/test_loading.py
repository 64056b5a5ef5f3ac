"""A ledger is read once, then only what it has grown by; an edited one is verified again."""

from __future__ import annotations

from pathlib import Path

from leaderboard import loading
from leaderboard.reading import Notice
from leaderboard.records import TrialRecord
from suite.events import TrialSuspended
from suite.ledger import Ledger
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan


def only() -> TrialRecord:
    (trial,) = loading.current().trials
    return trial


def test_a_ledger_that_has_not_changed_is_not_read_again(runs: Path) -> None:
    canned.write(runs, Plan())
    assert only() is only()


def test_a_grown_ledger_keeps_what_was_read_before(runs: Path) -> None:
    path = canned.write(runs, Plan(finished=False))
    before = only()
    with Ledger.open(path) as ledger:
        ledger.append(TrialSuspended(reason="stopped"))
    after = only()
    assert after.reason == "stopped"
    assert all(old is new for old, new in zip(before.attempts, after.attempts, strict=True))


def test_an_edited_ledger_becomes_a_notice(runs: Path) -> None:
    path = canned.write(runs, Plan())
    assert only()
    path.write_text(path.read_text().replace('"wall_s":6.5', '"wall_s":5.5', 1))
    survey = loading.current()
    assert survey.trials == () and isinstance(survey.notices[0], Notice)


def test_a_ledger_in_anothers_place_is_read_anew(runs: Path) -> None:
    path = canned.write(runs, Plan(speeds=(0.4, 0.5)))
    assert len(only().attempts) == 2
    other = canned.write(runs.parent / "other", Plan())
    other.replace(path)
    assert len(only().attempts) == 6
