"""best_of_n: the same question every time, every kernel judged, no more patience than it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from methods import resolve
from methods.best_of_n import BestOfN
from suite import tuner
from suite.errors import BudgetExhausted
from suite.events import ModelCalled
from suite.ledger import read
from suite.model import OpenAIModel
from suite.scripted import ScriptedModel
from suite.tunables import find
from suite.types import Budget, ModelSpec
from tests.methods.course import STARTER, Hill, bench, order, verdicts

METHOD = resolve("best_of_n", {})
KERNEL = 'extern "C" int run(const float* x, float* y, int64_t n) {{ return {}; }}\n'


def replies(*texts: str) -> ScriptedModel:
    return ScriptedModel([f"Here:\n```cpp\n{text}```\n" for text in texts])


def calls(folder: Path) -> list[ModelCalled]:
    return [entry.event for entry in read(folder / "ledger.jsonl") if isinstance(entry.event, ModelCalled)]


def test_every_question_is_the_brief_with_the_starter_and_nothing_of_the_past(tmp_path: Path) -> None:
    model = replies(*(KERNEL.format(number) for number in range(200)))
    with bench(order(tmp_path, METHOD), Hill(), model) as opened, pytest.raises(BudgetExhausted):
        BestOfN().search(opened)
    (question,) = {event.messages for event in calls(tmp_path)}
    assert len(question) == 1
    assert question[0].content.startswith(opened.brief)
    assert STARTER.text() in question[0].content
    assert len(verdicts(tmp_path)) == 8


def test_candidates_keep_the_starters_spec_and_name_it_as_parent(tmp_path: Path) -> None:
    trial = order(tmp_path, METHOD, Budget(evaluations=1))
    with bench(trial, Hill(), replies(KERNEL.format(7))) as opened, pytest.raises(BudgetExhausted):
        BestOfN().search(opened)
    (event,) = verdicts(tmp_path)
    assert event.candidate.text() == KERNEL.format(7)
    assert (event.candidate.spec, event.parent) == (STARTER.spec, STARTER.id)


@pytest.mark.parametrize("text", ["", "I would rather not.", "```cpp\nint other() { return 0; }\n```"])
def test_answers_without_a_kernel_are_skipped_but_not_for_ever(tmp_path: Path, text: str) -> None:
    with bench(order(tmp_path, METHOD), Hill(), ScriptedModel([text])) as opened:
        BestOfN(give_up_after=4).search(opened)
    assert len(calls(tmp_path)) == 4
    assert verdicts(tmp_path) == []


def test_a_kernel_in_between_renews_its_patience(tmp_path: Path) -> None:
    texts = ["nothing", *(f"```\n{KERNEL.format(number)}```" for number in range(40))]
    with bench(order(tmp_path, METHOD), Hill(), ScriptedModel(texts * 2)) as opened, pytest.raises(BudgetExhausted):
        BestOfN(give_up_after=3).search(opened)
    assert len(verdicts(tmp_path)) == 8


def test_several_lanes_ask_at_once_and_end_together(tmp_path: Path) -> None:
    model = replies(*(KERNEL.format(number) for number in range(200)))
    trial = order(tmp_path, METHOD, Budget(evaluations=9), concurrency=3)
    with bench(trial, Hill(), model) as opened, pytest.raises(BudgetExhausted):
        BestOfN().search(opened)
    assert len(verdicts(tmp_path)) == 9


def test_with_the_tuner_it_tries_the_starters_own_dials(tmp_path: Path) -> None:
    with tuner.serve() as address:
        model = OpenAIModel(ModelSpec(provider="tuner", name="tuner"), address, "none")
        with bench(order(tmp_path, METHOD), Hill(), model) as opened, pytest.raises(BudgetExhausted):
            BestOfN().search(opened)
    names = [dial.name for dial in find(STARTER.text())]
    assert all([dial.name for dial in find(event.candidate.text())] == names for event in verdicts(tmp_path))
    assert all(event.usage.input > 0 and event.usage.output > 0 for event in calls(tmp_path))
