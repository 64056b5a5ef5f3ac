"""The pages show what standings.py says, and have a word for every state of a runs folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard import frames, words
from leaderboard.reading import load, survey
from leaderboard.standings import standings
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, Plan
from tests.leaderboard.pages import charts, page, texts


def test_no_race_yet_says_what_to_do(runs: Path) -> None:
    app = page()
    assert "make demo" in app.info[0].value
    assert not app.dataframe


def test_the_tables_numbers_are_the_standings(runs: Path) -> None:
    for plan in canned.demo(1):
        canned.write(runs, plan)
    app = page()
    (table,) = standings(load(runs))
    shown = app.dataframe[0].value
    assert list(shown["method"]) == [row.name for row in table.rows]
    assert list(shown["heldout"].dropna()) == [row.heldout.value for row in table.rows if row.heldout]
    assert list(shown["marks"]) == [", ".join(row.marks) for row in table.rows]
    best = table.rows[0].heldout
    assert best is not None and app.metric[0].value == f"{words.three(best.value)} ×"
    assert app.metric[2].value == "2 of 2"
    assert "data as of" in texts(app)


def test_the_address_chooses_edition_and_conditions(runs: Path) -> None:
    canned.write(runs, Plan(edition="2026.11"))
    canned.write(runs, Plan(edition="2026.12", model=LLM))
    app = page(edition="2026.12")
    assert app.selectbox[0].value == "2026.12" and "large-1" in str(app.selectbox[2].value)
    app = page(edition="1999.01")
    assert app.selectbox[0].value == "2026.11" and "no LLM" in str(app.selectbox[2].value)


def test_a_running_trial_is_shown_as_running(runs: Path) -> None:
    canned.write(runs, Plan(finished=False))
    app = page()
    assert app.metric[0].value == "none yet"
    assert "1 unfinished" in app.dataframe[0].value["marks"][0]
    assert list(app.dataframe[1].value["state"]) == ["running"]


def test_a_broken_ledger_is_named_beside_the_others(runs: Path) -> None:
    canned.write(runs, Plan(seed=1))
    broken = canned.write(runs, Plan(seed=2))
    broken.write_text("not a ledger\n" + broken.read_text())
    app = page()
    assert "1 ledger cannot be read" in app.warning[0].value
    (notice,) = survey(runs).notices
    assert notice.todo in texts(app) and str(broken) in texts(app)
    assert len(app.dataframe[1].value) == 1


def test_a_trials_page_shows_its_candidates_and_workloads(runs: Path) -> None:
    path = canned.write(runs, Plan())
    (trial,) = load(runs)
    app = page("trial", trial=trial.id)
    assert trial.champion is not None
    assert app.metric[0].value == f"{words.three(trial.champion.heldout.value)} ×"
    assert words.interval(trial.champion.heldout) in app.caption[0].value
    candidates, workloads = app.dataframe[0].value, app.dataframe[1].value
    assert list(candidates["ending"]) == [attempt.status.value for attempt in trial.attempts]
    assert "was not declared" in candidates["why"][1]
    expected = frames.workload_frame(trial.champion.evaluation.measurements)
    assert expected[expected["split"] == "check"]["speedup"].isna().all(), "what is never timed has no speed, not 0"
    assert list(workloads["speedup"]) == list(expected["speedup"])
    assert "kHeadsPerPass" in texts(app) and str(path) in texts(app)
    assert f"derby check {canned.TASK} champion.cpp" in texts(app)


def test_a_dead_link_says_so(runs: Path) -> None:
    canned.write(runs, Plan())
    app = page("trial", trial="no-such-trial")
    assert "does not hold" in app.error[0].value
    assert "no-such-trial" in texts(app)


def test_a_champion_that_failed_is_explained(runs: Path) -> None:
    canned.write(runs, Plan(champion=Status.INCORRECT_NUMERICAL))
    app = page("trial", trial=load(runs)[0].id)
    assert "INCORRECT_NUMERICAL" in app.error[0].value
    assert "outside the tolerance" in texts(app)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(speeds=()),
        Plan(finished=False),
        Plan(speeds=(Status.TIMEOUT,)),
        Plan(champion=Status.COMPILE_ERROR, busy=True),
    ],
    ids=["not begun", "running", "nothing passed", "champion does not build"],
)
def test_every_state_of_a_trial_has_a_page(runs: Path, plan: Plan) -> None:
    canned.write(runs, plan)
    trial = load(runs)[0]
    assert page("trial", trial=trial.id).metric[3].value == trial.state.value


def test_methods_are_compared_against_every_axis(runs: Path) -> None:
    for plan in canned.demo(2):
        canned.write(runs, plan)
    app = page()
    assert charts(app) == 2 and "median over seeds" in texts(app)
    app.segmented_control(key="axis").set_value("tokens").run()
    assert "tpe has used no tokens" in texts(app) and charts(app) == 2
    app.segmented_control(key="lines").set_value("every seed").run()
    assert charts(app) == 2 and "median over seeds" not in texts(app)


def test_an_unknown_price_is_said_in_place_of_a_chart(runs: Path) -> None:
    canned.write(runs, Plan(model=LLM))
    app = page(axis="USD")
    assert "price of large-1 (high) is unknown" in app.info[0].value and charts(app) == 1


def test_where_nothing_was_paid_there_is_nothing_to_draw(runs: Path) -> None:
    for plan in canned.demo(1):
        canned.write(runs, plan)
    assert "no candidate shown here has used any dollars" in page(axis="USD").info[0].value
