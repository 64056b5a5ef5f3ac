"""A trial's page shows sources and their changes, prompts and replies, forecasts, and believes no text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from leaderboard.reading import load
from suite import task
from suite.events import Message, ModelCalled, TrialFinished, TrialStarted
from suite.ledger import Ledger
from suite.types import Prediction
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, TASK, Plan
from tests.leaderboard.pages import charts, html, page, texts

pytestmark = pytest.mark.slow  # each of them runs the page, one or two seconds; test_app.py opens it too

TASKS = Path(__file__).parents[2] / "tasks"


def trial_page(runs: Path, plan: Plan, **query: str) -> AppTest:
    canned.write(runs, plan)
    return page("trial", trial=load(runs)[0].id, **query)


def choose(app: AppTest, candidate: int) -> AppTest:
    return app.selectbox(key="candidate").select_index(candidate).run()


def test_the_source_of_any_candidate_can_be_read(runs: Path) -> None:
    app = trial_page(runs, Plan())
    assert "3: 1.3" in str(app.selectbox(key="candidate").value)
    choose(app, 1)
    assert canned.candidate(1).text().strip() in [code.value.strip() for code in app.code]
    assert "was not declared in this scope" in texts(app)


def test_changes_from_the_starter_are_shown_in_both_layouts(runs: Path) -> None:
    app = trial_page(runs, Plan(), view="against starter")
    shown = html(app)
    assert "// candidate <mark>0</mark>" in shown and "// candidate <mark>3</mark>" in shown
    assert "from the starter (−) to candidate 3 (+)" in texts(app)
    app.segmented_control(key="layout").set_value("unified").run()
    assert html(app) != shown and "// candidate <mark>3</mark>" in html(app)


def test_every_file_of_a_candidate_is_compared(runs: Path) -> None:
    app = trial_page(runs, Plan(helper=True), view="against starter")
    assert "kLanes = <mark>5</mark>" in html(app)
    choose(app, 2)
    assert "The same on both sides: helper.h" in texts(app)


def test_the_parent_is_who_the_method_says(runs: Path) -> None:
    app = trial_page(runs, Plan(), view="against parent")
    assert "from the starter (−)" in texts(app)
    choose(app, 0)
    assert "the starter has no parent" in texts(app)


def test_any_two_candidates_can_be_compared(runs: Path) -> None:
    app = trial_page(runs, Plan(), view="against another")
    app.selectbox(key="other").select_index(2).run()
    assert "from candidate 2 (−) to candidate 3 (+)" in texts(app)


def test_the_baseline_is_shown_if_it_is_the_one_that_was_raced(runs: Path) -> None:
    digest = task.load(TASKS / TASK).digest
    app = trial_page(runs, Plan(task_digest=digest), view="against baseline")
    assert "from the baseline (−)" in texts(app) and "baseline.cpp → kernel.cpp" in texts(app)


def test_a_baseline_that_is_not_at_hand_is_said(runs: Path) -> None:
    app = trial_page(runs, Plan(), view="against baseline")
    assert "the trial was run on aaaaaaaaaaaaaaaa" in texts(app) and html(app) == ""


def test_all_calls_are_listed_and_the_last_one_is_open(runs: Path) -> None:
    app = trial_page(runs, Plan(model=LLM, usd=0.0312))
    calls = app.dataframe[2].value
    assert list(calls["number"]) == [1, 2, 3, 4, 5] and list(calls["candidates"]) == ["1", "2", "3", "4", "5"]
    assert list(calls["usd"]) == ["$0.0312"] * 5
    assert "2,400 tokens in (1,200 cached) · 900 out (300 reasoning) · \\$0.0312 · 1.5 s" in texts(app)
    assert f"```cpp\n{canned.candidate(5).text()}```" in [code.value for code in app.code]
    assert [expander.label for expander in app.expander if "Prompt" in expander.label] == [
        "Prompt 1 of 2 · system · 18 characters",
        "Prompt 2 of 2 · user · 15 characters",
    ]


def test_the_call_behind_a_candidate_is_found_and_its_rule_stated(runs: Path) -> None:
    app = trial_page(runs, Plan())
    app.selectbox(key="from").select_index(1).run()
    assert "Candidate 2 comes from call 2 (its source is in the reply)." in texts(app)
    assert f"```cpp\n{canned.candidate(2).text()}```" in [code.value for code in app.code]
    assert "by order of time" in texts(app) and "Put down to it: candidate 2." in texts(app)


def test_a_trial_without_a_model_says_so(runs: Path) -> None:
    assert "No model was asked in this trial." in texts(trial_page(runs, Plan("tpe", model=None)))


def test_hostile_prompts_and_replies_are_shown_as_text_only(runs: Path) -> None:
    bad = "# Title\n<script>alert(1)</script> [click](javascript:alert(1)) \u202e"
    path = runs / "demo" / "trials" / "t" / "ledger.jsonl"
    with Ledger.open(path) as ledger:
        for event in canned.events(Plan()):
            if isinstance(event, ModelCalled):
                event = event.model_copy(update={"reply": bad, "messages": (Message(role="user", content=bad),)})
            ledger.append(event)
    app = page("trial", trial=load(runs)[0].id)
    shown = bad.replace("\u202e", "⟨202E⟩")
    assert [code.value for code in app.code].count(shown) == 2
    assert not any("alert" in str(item.value) for item in [*app.markdown, *app.caption]) and "alert" not in html(app)


@pytest.mark.parametrize("name", ["standings", "matrix", "trial"])
def test_no_name_or_reason_in_a_ledger_is_read_as_markdown(runs: Path, name: str) -> None:
    image = "![i](http://host/track.png)"
    path = runs / "demo" / "trials" / "t" / "ledger.jsonl"
    with Ledger.open(path) as ledger:
        for event in canned.events(Plan(predicted=[Prediction(speedup=1.0)])):
            if isinstance(event, TrialStarted):
                method = event.trial.method.model_copy(update={"name": image})
                trial = event.trial.model_copy(update={"method": method, "device": image, "toolchain": {image: image}})
                event = event.model_copy(update={"trial": trial, "environment": {image: image}})
            if isinstance(event, ModelCalled):
                event = event.model_copy(update={"finish_reason": image, "note": image})
            if isinstance(event, TrialFinished):
                event = event.model_copy(update={"reason": image})
            ledger.append(event)
    app = page(name, **({"trial": load(runs)[0].id} if name == "trial" else {}))
    read = [str(item.value) for item in [*app.caption, *app.markdown, *app.error, *app.info, *app.warning]]
    read += [table.value.to_csv() for table in app.table]
    assert any("track.png" in text for text in read) and not any(image in text for text in read)


def test_a_very_long_text_is_cut_beside_a_button_for_the_whole(runs: Path) -> None:
    path = runs / "demo" / "trials" / "t" / "ledger.jsonl"
    with Ledger.open(path) as ledger:
        for event in canned.events(Plan()):
            longer = isinstance(event, ModelCalled)
            ledger.append(event.model_copy(update={"reply": "word " * 40_000}) if longer else event)
    app = page("trial", trial=load(runs)[0].id)
    assert "The first 60,000 of 200,000 characters." in texts(app)
    assert max(len(code.value) for code in app.code) == 60_000


def test_forecasts_are_shown_only_where_there_are_any(runs: Path) -> None:
    assert charts(trial_page(runs, Plan(seed=1))) == 1
    guesses = [
        Prediction(speedup=1.1, value=0.3),
        Prediction(speedup=0.9, value=0.5),
        Prediction(speedup=2.0, value=0.9),
    ]
    canned.write(runs, Plan(seed=2, predicted=guesses))
    app = page("trial", trial=load(runs)[1].id)
    assert charts(app) == 2
    assert "3 candidates were predicted; 2 of them passed." in texts(app) and "(n = 3)" in texts(app)
    app.segmented_control(key="scale").set_value("own score").run()
    assert charts(app) == 2 and "Measured / predicted" not in texts(app)


@pytest.mark.parametrize("axis", ["tokens", "wall seconds"])
def test_the_curve_can_be_drawn_against_what_was_spent(runs: Path, axis: str) -> None:
    assert charts(trial_page(runs, Plan(), axis=axis)) == 1


def test_a_trial_of_unknown_price_has_no_dollar_curve(runs: Path) -> None:
    app = trial_page(runs, Plan(model=LLM), axis="USD")
    assert "price of large-1 (high) is unknown" in app.info[0].value and charts(app) == 0


def test_an_edited_source_is_said_and_the_rest_of_the_page_stays(runs: Path) -> None:
    path = canned.write(runs, Plan())
    app = page("trial", trial=load(runs)[0].id)
    # Same size and time: only the line's own hash can tell.
    before = path.stat()
    path.write_text(path.read_text().replace("// candidate 3", "// candidate 9"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    app.run()
    assert "A line of the ledger cannot be read." in [error.value for error in app.error]
    assert len(app.dataframe) == 3
