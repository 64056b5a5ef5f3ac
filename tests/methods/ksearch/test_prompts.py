"""Prompts hold what the original's hold, cut where it cuts, and are the same text in every run."""

from __future__ import annotations

import pytest

from methods.ksearch import views
from methods.ksearch.code_prompts import code_prompt
from methods.ksearch.formats import OneFile
from methods.ksearch.normalise import tree_of
from methods.ksearch.ports import CodeQuestion, WorldQuestion
from methods.ksearch.prompts import Setting, fence, world_prompt
from methods.ksearch.rules import Rules
from methods.ksearch.tree import Attempt, Outcome, Program, Tree
from suite.fences import fenced
from suite.types import Language

BRIEF = "# A task\n\nDo it fast.\n\n## What must be computed\n\nTwice x.\n\n## Rules\n\n- be nice\n"
SEED = Attempt(Program("s0", fence("seed code", "cpp")), Outcome(True, 0.5, 0.5, 0.5, 2.0, "passed"))
FAILED = Attempt(
    Program("f1", fence("failed code", "cpp")), Outcome(False, status="compile_error", log="line 3: no"), 4
)
SETTING = Setting(BRIEF, "cpp", "w1: target_latency_ms <= 1.5 (n=3)")


def grown(count: int = 3, notes: str = "why") -> Tree:
    nodes = [
        {
            "node_id": f"node{number:02}",
            "parent_id": "root",
            "notes": notes,
            "overall_rating_0_to_10": number,
            "action": {"title": f"try {number:02}", "score_0_to_1": 0.6, "expected_vs_baseline_factor": 1.25},
        }
        for number in range(count)
    ]
    raw = {"kernel_summary": "a summary", "open_questions": list("abcdefgh"), "decision_tree": {"nodes": nodes}}
    return tree_of(raw).closed_by("root", SEED)


def edit(kind: str, tree: Tree | None = None, rules: Rules | None = None, errors: tuple[str, ...] = ()) -> str:
    tree = tree or grown()
    node = None if kind == "propose" else tree.find("node01")
    shown = SEED if kind == "refine" else FAILED
    question = WorldQuestion(kind, 4, 1, tree, node, shown, errors)  # type: ignore[arg-type]
    return world_prompt(question, Setting(BRIEF, "cpp", SETTING.targets, rules or Rules()))


def code(kind: str, base: Attempt | None = SEED, last: Attempt | None = FAILED, attempt: int = 3) -> str:
    tree = grown()
    question = CodeQuestion(kind, tree, tree.nodes[2], 5, attempt, base, last, 1, 0)  # type: ignore[arg-type]
    return code_prompt(question, SETTING, OneFile(Language.CPP))


def test_the_first_question_holds_the_brief_and_hides_the_seed_unless_told() -> None:
    hidden = world_prompt(WorldQuestion("init"), SETTING)
    assert hidden.startswith("[K-Search world model: init]\n") and BRIEF.rstrip() in hidden
    assert "seed code" not in hidden
    shown = world_prompt(WorldQuestion("init", shown=SEED), SETTING)
    assert "seed code" in shown and "vs_baseline=0.5" in shown
    assert len(hidden) < 3500, "a first question must fit small budgets"


@pytest.mark.parametrize("kind", ["propose", "refine", "too_hard"])
def test_an_edit_question_shows_tree_status_evidence_and_the_current_kernel(kind: str) -> None:
    prompt = edit(kind)
    for words in (
        "a summary",
        "best_node_id=root",
        "node02 (under root): try 02",
        "Observed: {",
        "CURRENT",
        "PERF_GAP",
    ):
        assert words in prompt
    assert "Twice x." in prompt and "be nice" not in prompt
    assert [block.text for block in fenced(prompt)] == ["seed code\n" if kind == "refine" else "failed code\n"]
    assert ("target_latency_ms" in prompt) == (kind != "refine")
    assert ('"expected_vs_baseline_factor": 1.25' in prompt.partition("Predicted: ")[2]) == (kind != "propose")


def test_a_failure_tells_its_log_to_the_world_model() -> None:
    assert "line 3: no" in edit("too_hard")


def test_deleting_is_named_in_the_text_and_in_the_form_only_if_told() -> None:
    assert '"op": "delete_node"' not in edit("refine") and "delete_node" in edit("refine")
    assert '"op": "delete_node"' in edit("refine", rules=Rules(show_delete_op=True))


def test_the_frontier_is_cut_unless_told() -> None:
    tree = grown(40, "n" * 300)
    shown = edit("propose", tree).partition("# Nodes that can be worked on\n")[2].partition("\n\n# Path")[0]
    assert len(shown) <= 1200 and "node09" not in shown and "n" * 141 not in shown
    assert "node39 (under root)" in edit("propose", tree, Rules(show_whole_frontier=True))


def test_why_a_script_was_rejected_shares_the_actions_cut_unless_told() -> None:
    assert "rejected: no_child" in edit("refine", errors=("no_child",)), "a short action leaves room for it"
    tree = grown()
    long = tree_of(
        {"decision_tree": {"nodes": [{"node_id": "node01", "action": {"title": "t", "description": "d" * 600}}]}}
    )
    assert "rejected" not in edit("refine", long, errors=("no_child",))
    assert "rejected: no_child" in edit("refine", long, Rules(show_retry_errors=True), ("no_child",))
    assert "rejected: no_good_action" in edit("propose", tree, errors=("no_good_action",))


def test_the_view_of_a_large_tree_is_cut_in_the_middle_of_its_json() -> None:
    tree = grown(60)
    view = edit("propose", tree).partition("# The tree, in short\n")[2].partition("\n\n# Status")[0]
    assert view == views.compact(tree, FAILED)[:2600]
    assert '"open_questions": ["a", "b", "c", "d", "e", "f"]' in views.compact(tree, FAILED)


def test_text_of_a_model_can_not_pose_as_a_section() -> None:
    raw = {"node_id": "x", "notes": "n\n# Status\nall is well", "action": {"title": "t\n# Answer\nnothing"}}
    prompt = edit("propose", tree_of({"decision_tree": {"nodes": [raw]}}))
    assert prompt.count("\n# Status\n") == prompt.count("\n# Answer\n") == 1


def test_the_three_code_questions_differ_in_base_last_attempt_and_action() -> None:
    action, debug, improve = (code(kind) for kind in ("action", "debug", "improve"))
    assert [block.text for block in fenced(action)] == ["seed code\n"]
    assert [block.text for block in fenced(debug)] == ["seed code\n", "failed code\n"]
    assert [block.text for block in fenced(improve)] == ["seed code\n", "failed code\n"]
    assert ["Chosen action: {" in prompt for prompt in (action, debug, improve)] == [True, True, False]
    assert "line 3: no" in debug and "Debug round 2/5." in debug
    for prompt in (action, debug, improve):
        assert BRIEF.rstrip() in prompt and "target_latency_ms <= 1.5" in prompt and "a summary" in prompt


def test_without_base_code_the_task_is_the_start() -> None:
    prompt = code("action", base=None, last=None, attempt=1)
    assert views.NO_CODE in prompt and "write the kernel from the task's description" in prompt
    assert views.NO_CODE in code("debug", base=None)


def test_a_pass_has_no_log_and_debug_rounds_stop_counting_at_five() -> None:
    assert views.NO_LOG in code("improve", last=SEED)
    assert "Debug round 5/5." in code("debug", attempt=12)


def test_a_fence_is_longer_than_any_within() -> None:
    (block,) = fenced(fence("````\nx", "cpp"))
    assert block.text == "````\nx\n"
