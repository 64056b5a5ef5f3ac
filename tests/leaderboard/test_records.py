"""A trial record says what its ledger says, and one bad ledger does not hide the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard.reading import IMPORTED, Notice, load, read_trial, survey
from leaderboard.records import State, TrialRecord
from suite.events import TrialFinished, TrialResumed, TrialSuspended
from suite.ledger import Ledger
from suite.score import ZERO, score
from suite.types import Spent, Split, Status
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan


def only(runs: Path) -> TrialRecord:
    (trial,) = load(runs)
    return trial


def test_a_finished_trial_is_told_whole(tmp_path: Path) -> None:
    plan = Plan()
    path = canned.write(tmp_path, plan)
    trial = only(tmp_path)
    assert (trial.id, trial.spec, trial.ledger) == (canned.trial_spec(plan).id, canned.trial_spec(plan), path)
    assert (trial.state, trial.reason) == (State.FINISHED, "the budget of evaluations is spent")
    assert [attempt.number for attempt in trial.attempts] == list(range(6))
    assert trial.spent.evaluations == 5 and trial.spent.usage.total == 5 * 3300
    assert trial.environment["git"] == "0123abc" and trial.heldout_commitment == "c" * 64
    assert trial.verified and not trial.busy


def test_scores_are_the_scoring_librarys(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan())
    trial = only(tmp_path)
    assert trial.champion is not None and trial.best is not None
    assert trial.champion.heldout == score(trial.champion.evaluation, Split.HELDOUT)
    assert trial.champion.search == score(trial.champion.evaluation, Split.SEARCH)
    assert trial.champion.id == trial.best.id and trial.best.number == 3
    assert trial.best.score.value == pytest.approx(1.3, rel=0.02)


def test_best_so_far_never_falls_and_failures_count_nothing(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan())
    attempts = only(tmp_path).attempts
    best = [attempt.best for attempt in attempts]
    assert best == sorted(best)
    failed = [attempt for attempt in attempts if attempt.status != Status.PASSED]
    assert [attempt.score for attempt in failed] == [ZERO, ZERO]
    assert all(attempt.failure is not None for attempt in failed)


def test_a_trial_under_way_is_running_and_has_no_champion(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(finished=False))
    trial = only(tmp_path)
    assert (trial.state, trial.champion, trial.spent.evaluations) == (State.RUNNING, None, 5)


def test_suspension_lasts_until_the_trial_is_resumed(tmp_path: Path) -> None:
    path = canned.write(tmp_path, Plan(finished=False))
    with Ledger.open(path) as ledger:
        ledger.append(TrialSuspended(reason="the judge failed three times"))
    assert (only(tmp_path).state, only(tmp_path).reason) == (State.SUSPENDED, "the judge failed three times")
    with Ledger.open(path) as ledger:
        ledger.append(TrialResumed(environment={}))
    assert only(tmp_path).state == State.RUNNING


def test_a_trial_in_which_nothing_passed_ends_without_a_champion(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(speeds=(Status.TIMEOUT, Status.POLICY)))
    trial = only(tmp_path)
    assert (trial.state, trial.champion, trial.best) == (State.FINISHED, None, None)
    assert trial.starter is not None and trial.starter.status == Status.TIMEOUT


def test_a_busy_machine_is_remembered(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(busy=True))
    assert only(tmp_path).busy


def test_an_imported_race_is_a_claim(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan())
    (tmp_path / "demo" / IMPORTED).touch()
    assert not only(tmp_path).verified


def test_a_changed_number_is_noticed_and_the_other_trials_are_shown(tmp_path: Path) -> None:
    path = canned.write(tmp_path, Plan(seed=1))
    canned.write(tmp_path, Plan(seed=2))
    path.write_text(path.read_text().replace('"wall_s":6.5', '"wall_s":5.5', 1))
    found = survey(tmp_path)
    assert [trial.spec.seed for trial in found.trials] == [2]
    (notice,) = found.notices
    assert notice.ledger == path and notice.came and notice.expected and notice.todo


def test_a_ledger_that_does_not_begin_with_its_trial_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "race" / "trials" / "odd" / "ledger.jsonl"
    path.parent.mkdir(parents=True)
    with Ledger.open(path) as ledger:
        ledger.append(TrialFinished(reason="", champion=None, spent=Spent()))
    assert isinstance(read_trial(path), Notice)


def test_a_folder_in_a_ledgers_place_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "race" / "trials" / "odd" / "ledger.jsonl"
    path.mkdir(parents=True)
    (notice,) = survey(tmp_path).notices
    assert notice.ledger == path


def test_a_line_being_written_and_an_empty_ledger_are_no_trouble(tmp_path: Path) -> None:
    path = canned.write(tmp_path, Plan(finished=False))
    before = only(tmp_path)
    with path.open("a") as file:
        file.write('{"version":1,"seq":99,"ti')
    assert only(tmp_path) == before
    empty = tmp_path / "demo" / "trials" / "new" / "ledger.jsonl"
    empty.parent.mkdir()
    empty.touch()
    assert survey(tmp_path).trials == (before,) and survey(tmp_path).notices == ()


def test_no_runs_folder_is_an_empty_board(tmp_path: Path) -> None:
    assert load(tmp_path / "none") == ()
    assert survey(tmp_path / "none").as_of is None


def test_a_caching_reader_is_asked_for_every_ledger(tmp_path: Path) -> None:
    paths = [canned.write(tmp_path, Plan(seed=seed)) for seed in (1, 2)]
    asked: list[Path] = []

    def reader(path: Path) -> TrialRecord | Notice | None:
        asked.append(path)
        return read_trial(path)

    assert survey(tmp_path, reader) == survey(tmp_path)
    assert asked == sorted(paths)
