"""K-Search on a bench: what it asks, judges and predicts, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from methods import planners, resolve
from methods.ksearch import KSearch
from methods.ksearch.adapter import WORLD_MODEL
from suite import tuner
from suite.errors import BudgetExhausted
from suite.events import Message, ModelCalled
from suite.ledger import read
from suite.model import OpenAIModel
from suite.scripted import ScriptedEvaluator
from suite.tunables import find
from suite.types import Budget, Candidate, Language, ModelSpec, Prediction, SourceFile, Spec
from suite.workbench import EditFormat, Reply
from tests.methods.course import STARTER, Hill, bench, order, verdicts

METHOD = resolve("k_search", {})
TREE = json.dumps(
    {
        "decision_tree": {
            "nodes": [
                {
                    "node_id": name,
                    "action": {
                        "title": f"try {name}",
                        "score_0_to_1": value,
                        "difficulty_1_to_5": 2,
                        "expected_vs_baseline_factor": expected,
                    },
                }
                for name, value, expected in (("a", 0.9, 1.75), ("b", 0.6, None), ("c", 0.6, -1))
            ]
        }
    }
)


class Script:
    """A model that says what is given for each kind of question, the last answer again and again."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self._answers = {kind: list(texts) for kind, texts in answers.items()}
        self.asked: list[str] = []

    def chat(self, messages: Sequence[Message], *, max_output_tokens: int, seed: int, edit_format: EditFormat) -> Reply:
        kind = messages[0].content.partition("]")[0].rpartition(" ")[2]
        self.asked.append(kind)
        left = self._answers.get(kind, [""])
        text = left.pop(0) if len(left) > 1 else left[0]
        return Reply(text=text, finish_reason="refused" if text == "(refused)" else "stop")


def kernel(wish: str) -> str:
    return f'```cpp\n// scripted: {wish}\nextern "C" int run(const float* x, float* y, int64_t n) {{ return 0; }}\n```'


def prompts(folder: Path, kind: str) -> list[str]:
    called = [entry.event for entry in read(folder / "ledger.jsonl") if isinstance(entry.event, ModelCalled)]
    texts = [message.content for event in called for message in event.messages]
    return [text for text in texts if text.startswith((f"[K-Search world model: {kind}]", f"[K-Search code: {kind}]"))]


def search(folder: Path, model: Script, method: KSearch, evaluations: int = 3) -> None:
    """Let it search to the end of its budget."""
    trial = order(folder, METHOD, Budget(evaluations=evaluations))
    with bench(trial, ScriptedEvaluator(), model) as opened, pytest.raises(BudgetExhausted):
        method.search(opened)


def test_it_predicts_what_its_tree_expects_of_the_action_and_names_what_it_made_the_kernel_from(tmp_path: Path) -> None:
    model = Script(init=[TREE], action=[kernel("1.5")], improve=[kernel("1.6"), kernel("1.7")])
    search(tmp_path, model, KSearch())
    events = verdicts(tmp_path)
    assert [event.predicted for event in events] == [Prediction(speedup=1.75, value=0.9)] * 3
    assert [event.parent for event in events] == [STARTER.id, events[0].candidate.id, events[1].candidate.id]
    assert [event.note for event in events][:2] == ["action, node a: try a", "improve, node a: try a"]


@pytest.mark.parametrize("name", ["b", "c"])
def test_an_expectation_that_is_none_predicts_the_value_alone(tmp_path: Path, name: str) -> None:
    tree = TREE.replace('"score_0_to_1": 0.9', '"score_0_to_1": 0.1').replace(f'"{name}"', '"A"')
    search(tmp_path, Script(init=[tree], action=[kernel("1.5")], improve=[kernel("1.6")]), KSearch(), 1)
    (event,) = verdicts(tmp_path)
    assert event.predicted == Prediction(speedup=None, value=0.6)


def test_the_starter_is_the_seed_and_its_speed_the_bar(tmp_path: Path) -> None:
    model = Script(init=[TREE], action=[kernel("0.5")], improve=[kernel("0.6"), kernel("0.7")], refine=['{"ops": []}'])
    search(tmp_path, model, KSearch(stagnation=2))
    (action, *_) = prompts(tmp_path, "action")
    assert STARTER.text() in action and "vs_baseline" in action
    improve = prompts(tmp_path, "improve")[0]
    assert STARTER.text() in improve and "scripted: 0.5" in improve, "the parent is faster and stays the base"
    assert model.asked[:4] == ["init", "action", "improve", "refine"], "two attempts below the parent end the cycle"


@pytest.mark.parametrize(("stagnation", "attempts"), [(0, 7), (3, 3)])
def test_patience_follows_the_language_unless_given(tmp_path: Path, stagnation: int, attempts: int) -> None:
    texts = [kernel(f"COMPILE_ERROR {number}") for number in range(99)]
    model = Script(init=[TREE], action=texts[:9], debug=texts[9:], too_hard=['{"ops": []}'])
    search(tmp_path, model, KSearch(stagnation=stagnation), 8)
    assert model.asked.index("too_hard") == 1 + attempts
    assert "COMPILE_ERROR" in prompts(tmp_path, "too_hard")[0]


def test_answers_without_a_kernel_are_asked_for_again_and_not_charged(tmp_path: Path) -> None:
    model = Script(init=[TREE], action=["no", "```\n```", "", "I can not", kernel("1.5")], improve=[kernel("1.6")])
    search(tmp_path, model, KSearch(), 2)
    assert model.asked[:7] == ["init", *["action"] * 5, "improve"]


@pytest.mark.parametrize("answers", [{"init": ["(refused)"]}, {"init": [TREE], "action": ["(refused)"]}])
def test_a_refused_prompt_ends_the_run_or_costs_an_attempt(tmp_path: Path, answers: dict[str, list[str]]) -> None:
    trial = order(tmp_path, METHOD)
    strict, patient = Script(**answers), Script(**answers)
    with bench(trial, ScriptedEvaluator(), strict) as opened:
        KSearch().search(opened)
    assert verdicts(tmp_path) == []
    with bench(order(tmp_path / "again", METHOD), ScriptedEvaluator(), patient) as opened:
        KSearch(survive_model_errors=True).search(opened)
    assert len(strict.asked) <= 2 < len(patient.asked) + 1 <= 40


def test_the_tree_is_kept_for_whoever_looks(tmp_path: Path) -> None:
    search(tmp_path, Script(init=[TREE], action=[kernel("1.5")], improve=[kernel("1.6")]), KSearch(), 1)
    tree = json.loads((tmp_path / "scratch" / WORLD_MODEL).read_text())
    root, *nodes = tree["decision_tree"]["nodes"]
    assert root["solution_ref"]["solution_id"] == STARTER.id
    assert [node["node_id"] for node in nodes] == ["a", "b", "c"]


def test_cuda_candidates_have_three_files(tmp_path: Path) -> None:
    starter = Candidate(
        spec=Spec(language=Language.CUDA, entry_point="k.cu::run"),
        sources=(SourceFile(path="k.cu", content="// scripted: 1.0\n"),),
    )
    parts = ("kernel.h", "header_file", "1.5"), ("kernel.cu", "cuda_file", ""), ("main.cpp", "cpp_file", "")
    answer = "\n".join(f'<{tag} name="{name}">\n// scripted: {wish}\n</{tag}>' for name, tag, wish in parts)
    trial = order(tmp_path, METHOD, Budget(evaluations=1), starter=starter)
    trial = trial.model_copy(update={"spec": trial.spec.model_copy(update={"language": Language.CUDA})})
    model = Script(init=[TREE], action=["```cuda\nint run() { return 0; }\n```", answer], improve=[answer + " "])
    with bench(trial, ScriptedEvaluator(), model) as opened, pytest.raises(BudgetExhausted):
        KSearch(code_retries=1).search(opened)
    (event,) = verdicts(tmp_path)
    assert [source.path for source in event.candidate.sources] == ["kernel.h", "kernel.cu", "main.cpp"]
    assert event.candidate.spec.entry_point == "main.cpp::run"


def test_without_a_model_the_planner_plans_and_the_tuner_writes(tmp_path: Path) -> None:
    method = resolve("k_search", {"stagnation": 2})
    with tuner.serve(planners()) as address:
        model = OpenAIModel(ModelSpec(provider="tuner", name="tuner"), address, "none")
        trial = order(tmp_path, method, Budget(evaluations=10))
        with bench(trial, Hill(), model) as opened, pytest.raises(BudgetExhausted):
            KSearch(stagnation=2).search(opened)
    assert len(prompts(tmp_path, "init")) == 1 and prompts(tmp_path, "refine")
    expected = [event.predicted.speedup for event in verdicts(tmp_path) if event.predicted is not None]
    assert len(expected) == 10 and len(set(expected)) > 1
    names = [dial.name for dial in find(STARTER.text())]
    assert all([dial.name for dial in find(event.candidate.text())] == names for event in verdicts(tmp_path))
