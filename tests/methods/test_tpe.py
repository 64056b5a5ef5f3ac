"""TPE: turns the starter's dials only, never pays for a setting twice, finds what random search does not."""

from __future__ import annotations

import logging
from pathlib import Path

import optuna
import pytest

from methods import resolve
from methods.tpe import Tpe
from suite.errors import BudgetExhausted, MethodError
from suite.tunables import find
from suite.types import Budget
from tests.methods.course import BEST, SETTINGS, STARTER, AllFail, Hill, bench, order, verdicts
from tests.suite import stage

TPE = resolve("tpe", {})


def tried(folder: Path) -> list[tuple[str, ...]]:
    return [tuple(dial.current for dial in find(event.candidate.text())) for event in verdicts(folder)]


def search(folder: Path, seed: int = 1, evaluations: int = 12, concurrency: int = 1) -> list[tuple[str, ...]]:
    trial = order(folder, TPE, Budget(evaluations=evaluations), seed=seed, concurrency=concurrency)
    with bench(trial, Hill()) as opened, pytest.raises(BudgetExhausted):
        Tpe().search(opened)
    return tried(folder)


def test_every_candidate_is_the_starter_with_other_admissible_values(tmp_path: Path) -> None:
    settings = search(tmp_path)
    start = find(STARTER.text())
    assert len(settings) == len(set(settings)) == 12
    assert tuple(dial.current for dial in start) not in settings
    assert all(value in dial.values for setting in settings for value, dial in zip(setting, start, strict=True))
    for event in verdicts(tmp_path):
        assert event.parent == STARTER.id
        assert event.note.startswith("unroll=")
        assert event.candidate.text().split("\n")[3:] == STARTER.text().split("\n")[3:]


def test_the_same_seed_gives_the_same_settings_and_another_seed_others(tmp_path: Path) -> None:
    first, again, other = (
        search(tmp_path / name, seed, evaluations=8) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again
    assert first != other


def test_settings_follow_from_the_seed_with_several_evaluations_at_once(tmp_path: Path) -> None:
    first, again = (search(tmp_path / name, evaluations=13, concurrency=3) for name in ("a", "b"))
    assert sorted(first) == sorted(again)
    assert len(set(first)) == 13


@pytest.mark.slow
def test_it_finds_the_best_setting_sooner_than_chance(tmp_path: Path) -> None:
    found = [BEST in search(tmp_path / str(seed), seed, evaluations=18) for seed in range(5)]
    # Chance finds it in 18 of 39 draws.
    assert sum(found) >= 4


def test_it_ends_of_itself_when_every_setting_has_been_tried(tmp_path: Path) -> None:
    with bench(order(tmp_path, TPE, Budget(evaluations=SETTINGS + 10)), Hill()) as opened:
        Tpe(patience=3).search(opened)
    settings = tried(tmp_path)
    assert len(settings) == len(set(settings)) == SETTINGS - 1
    assert opened.desk.meter.spent.free == 0


def test_failures_count_as_zero_and_do_not_end_the_search(tmp_path: Path) -> None:
    with bench(order(tmp_path, TPE), AllFail()) as opened, pytest.raises(BudgetExhausted):
        Tpe().search(opened)
    assert len(verdicts(tmp_path)) == 8


def test_a_starter_without_dials_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    trial = order(tmp_path, TPE, starter=stage.STARTER)
    with bench(trial, Hill()) as opened, pytest.raises(MethodError, match="tune:"):
        Tpe().search(opened)


def test_optuna_keeps_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    search(tmp_path)
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING
    assert capfd.readouterr() == ("", "")
