"""The stand-in planner: valid trees and edits for our prompts alone, settings of real dials, predictions that learn."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from methods import planners
from methods.ksearch.code_prompts import code_prompt
from methods.ksearch.edits import apply
from methods.ksearch.formats import OneFile
from methods.ksearch.normalise import tree_of
from methods.ksearch.planner import HOPE, LOOSE, PARITY, reply
from methods.ksearch.ports import CodeQuestion, WorldQuestion
from methods.ksearch.prompts import Setting, fence, world_prompt
from methods.ksearch.rules import Rules
from methods.ksearch.tree import Attempt, Node, Outcome, Program, Tree
from suite.events import Message
from suite.fences import fenced
from suite.tunables import find
from suite.types import Language
from tests.methods.course import STARTER

SETTING = Setting("# Task\n\nDouble.", "cpp")


def passed(speed: float, text: str = STARTER.text(), round_: int = 2) -> Attempt:
    return Attempt(Program("p", fence(text, "cpp")), Outcome(True, speed, speed, speed, 1.0, "passed"), round_)


FAILED = Attempt(Program("f", fence(STARTER.text(), "cpp")), Outcome(False, status="timeout"), 3)


def ask(question: WorldQuestion) -> dict[str, Any]:
    text = reply([Message(role="user", content=world_prompt(question, SETTING))])
    assert text is not None
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def first_tree() -> Tree:
    return tree_of(ask(WorldQuestion("init"))).closed_by("root", passed(1.0))


def learned(speed: float, expected: float = PARITY) -> tuple[Node, Tree]:
    """An action closed at a speed, and the tree after what the planner made of it."""
    tree = first_tree()
    node = tree.find("turn_one_dial")
    assert node is not None and node.action.expected == expected
    tree = tree.closed_by(node.id, passed(speed))
    after, report = apply(tree, ask(WorldQuestion("refine", 2, 1, tree, node, passed(speed))), 2, Rules())
    assert report.errors == ()
    return node, after


def test_the_register_knows_it() -> None:
    assert reply in planners()


@pytest.mark.parametrize(
    "text", ["", "Make it faster", "[K-Search world model: other]", "x [K-Search world model: init]"]
)
def test_a_question_of_somebody_else_is_not_its_own(text: str) -> None:
    assert reply([Message(role="user", content=text)]) is None
    assert reply([]) is None


def test_the_first_tree_has_three_actions_that_hope_for_parity() -> None:
    actions = [node.action for node in first_tree().frontier()]
    assert [action.title for action in actions] == list(LOOSE)
    assert {action.expected for action in actions} == {PARITY}


def test_a_first_question_that_shows_a_kernel_gets_settings_and_a_better_guess() -> None:
    tree = tree_of(ask(WorldQuestion("init", shown=passed(0.5))))
    assert next(node.action.title for node in tree.frontier()) == "set unroll = 8"
    assert {node.action.expected for node in tree.frontier()} == {0.55}


def test_a_success_is_built_upon_by_steps_of_one_dial() -> None:
    node, after = learned(1.2)
    children = after.open_children(node.id, 5)
    assert [child.action.title for child in children] == ["set unroll = 8", "set unroll = 2", "set split = 3"]
    assert [child.action.expected for child in children] == [pytest.approx(1.2 * (1 + HOPE))] * 3


def test_a_missed_prediction_lowers_what_is_hoped_of_all_others() -> None:
    node, after = learned(0.25)
    hoped = [child.action.expected for child in after.open_children(node.id)]
    assert hoped == [pytest.approx(0.25 * (1 + HOPE / 4), rel=1e-3)] * 3
    other = after.find("turn_two_dials")
    assert other is not None and other.action.expected == pytest.approx(0.5)
    assert max(child.action.score for child in after.open_children(node.id)) < other.action.score


def test_a_failure_halves_the_action_and_tries_its_neighbour() -> None:
    tree = first_tree()
    node = tree.find("turn_one_dial")
    assert node is not None
    after, report = apply(tree, ask(WorldQuestion("too_hard", 3, 1, tree, node, FAILED)), 3, Rules())
    now = after.find(node.id)
    assert report.errors == () and now is not None
    assert now.action.score == pytest.approx(node.action.score / 2)
    assert len(after.children("root")) == len(tree.children("root")) + 1


def test_a_proposal_goes_under_the_best_program_and_is_good_enough() -> None:
    tree = tree_of({"decision_tree": {"nodes": []}}).closed_by("root", passed(1.0))
    script = ask(WorldQuestion("propose", 5, 1, tree, None, FAILED))
    after, report = apply(tree, script, 5, Rules())
    assert report.errors == ()
    assert [node.parent for node in after.frontier()] == ["root"] * 3
    assert min(node.action.score for node in after.frontier()) > 0.5


def test_what_is_planned_already_is_not_planned_again() -> None:
    node, after = learned(1.2)
    titles = [one.action.title for one in after.nodes if one.open]
    script = ask(WorldQuestion("propose", 9, 1, after, None, passed(1.2)))
    assert not {op["node"]["action"]["title"] for op in script["ops"]} & set(titles)
    assert node.action.title not in titles


def test_a_planned_setting_is_carried_out_and_nothing_else() -> None:
    node, after = learned(1.2)
    child = after.open_children(node.id)[2]
    question = CodeQuestion("action", after, child, 4, 1, passed(1.2), None, 0, 0)
    text = reply([Message(role="user", content=code_prompt(question, SETTING, OneFile(Language.CPP)))])
    (block,) = fenced(text or "")
    assert {dial.name: dial.current for dial in find(block.text)} == {"unroll": "4", "split": "3", "stream": "false"}


@pytest.mark.parametrize("title", ["turn one dial", "set nothing = 3", "set unroll = 3", "set unroll = 4"])
def test_an_action_it_can_not_carry_out_is_the_tuners(title: str) -> None:
    tree = tree_of({"decision_tree": {"nodes": [{"node_id": "a", "action": {"title": title}}]}})
    question = CodeQuestion("action", tree, tree.nodes[1], 4, 1, passed(1.2), None, 0, 0)
    assert reply([Message(role="user", content=code_prompt(question, SETTING, OneFile(Language.CPP)))]) is None


def test_the_same_question_gets_the_same_answer() -> None:
    tree = first_tree()
    question = WorldQuestion("propose", 5, 1, tree, None, FAILED)
    assert ask(question) == ask(question)


def told(nodes: str) -> str:
    return f"[K-Search world model: too_hard]\n# Status\n# Nodes that can be worked on\n{nodes}\n# Path\n"


@pytest.mark.parametrize(
    "prompt",
    [
        told("- a (under b): t" + " [V=1, " * 100_000),
        told("- a (under b): t [V=1, x" + "expected=" * 100_000),
        told("- a (under b): t [V=e, expected=1]") + "\n# What happened\nObserved: score=...",
        "[K-Search world model: init]\nIt: vs_baseline=1.1.1\n",
    ],
)
def test_whatever_a_prompt_says_it_is_answered_at_once(prompt: str) -> None:
    began = time.monotonic()
    assert json.loads(reply([Message(role="user", content=prompt)]) or "")
    assert time.monotonic() - began < 2
