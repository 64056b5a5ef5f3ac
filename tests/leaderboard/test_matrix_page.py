"""The page of tasks x methods shows the matrix, sorted as asked, for the conditions asked for."""

from __future__ import annotations

from pathlib import Path

from leaderboard.reading import load
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, TASK, Plan
from tests.leaderboard.course import SECOND
from tests.leaderboard.pages import html, page, texts


def order(shown: str) -> list[str]:
    names = {TASK: TASK.replace("_", "_<wbr>"), SECOND: SECOND.replace("_", "_<wbr>")}
    return sorted(names, key=lambda name: shown.index(names[name]))


def test_no_race_yet_says_what_to_do(runs: Path) -> None:
    assert "make demo" in page("matrix").info[0].value


def test_cells_lead_to_trials_and_tasks_to_standings(runs: Path) -> None:
    for plan in (Plan(), Plan("tpe", model=None), Plan(task=SECOND)):
        canned.write(runs, plan)
    app = page("matrix")
    shown = html(app)
    assert all(f"trial?trial={trial.id}" in shown for trial in load(runs))
    assert f"./?edition=dev&amp;task={TASK}" in shown
    assert "finished on 1 of 2 tasks" in shown and "no LLM" in shown and "preliminary" in shown
    assert canned.DEVICE in texts(app) and "edition dev" in texts(app)


def test_tasks_are_sorted_by_the_method_asked_for(runs: Path) -> None:
    for plan in (Plan(champion=0.8), Plan(task=SECOND, champion=1.3)):
        canned.write(runs, plan)
    assert order(html(page("matrix"))) == [TASK, SECOND]
    assert order(html(page("matrix", by="best_of_n"))) == [SECOND, TASK]


def test_stand_ins_and_models_are_other_conditions(runs: Path) -> None:
    for plan in (Plan(), Plan("avo", model=LLM)):
        canned.write(runs, plan)
    app = page("matrix")
    options = app.selectbox(key="conditions").options
    assert len(options) == 2
    first = html(app)
    app.selectbox(key="conditions").select_index(1).run()
    assert ("best_<wbr>of_<wbr>n" in first) != ("best_<wbr>of_<wbr>n" in html(app))


def test_an_unfinished_race_has_a_matrix_without_numbers(runs: Path) -> None:
    canned.write(runs, Plan(finished=False))
    assert "not finished" in html(page("matrix"))
