"""The pages show what standings.py says, and have a word for every state of a runs folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from leaderboard import frames, words
from leaderboard.records import load, survey
from leaderboard.standings import standings
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, Plan

APP = Path(__file__).parents[2] / "leaderboard" / "app.py"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DERBY_RUNS", str(tmp_path))
    return tmp_path


def page(name: str = "", **query: str) -> AppTest:
    # AppTest can only switch to pages that are files, so the second page is run by itself.
    script = f"from leaderboard import {name}_page\n{name}_page.show()\n"
    app = AppTest.from_string(script, default_timeout=120) if name else AppTest.from_file(APP, default_timeout=120)
    for key, text in query.items():
        app.query_params[key] = text
    app.run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    found = [*app.info, *app.warning, *app.error, *app.caption, *app.code, *app.markdown]
    return "\n".join(str(item.value) for item in found)


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


def test_the_source_of_any_candidate_can_be_read_and_compared(runs: Path) -> None:
    canned.write(runs, Plan())
    app = page("trial", trial=load(runs)[0].id)
    assert "3: 1.3" in str(app.selectbox(key="candidate").value)
    app.selectbox(key="candidate").select_index(1).run()
    assert canned.candidate(1).text().strip() in [code.value for code in app.code]
    assert "was not declared in this scope" in texts(app)
    app.segmented_control(key="view").set_value("changes from the starter").run()
    assert any(code.value.startswith("--- candidate 0/kernel.cpp") for code in app.code)


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
