"""Whatever a model writes as JSON, a tree or an edit script: it is read, clamped or dropped, and never raises."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.ksearch import views
from methods.ksearch.edits import NEW_NODES, apply, is_script
from methods.ksearch.json_text import first_object
from methods.ksearch.normalise import json_of, node_of, number, tree_of
from methods.ksearch.rules import Rules
from methods.ksearch.tree import Attempt, Outcome, Program, Tree

KEYS = (
    *("node_id", "parent_id", "decision", "choice", "overall_rating_0_to_10", "confidence_0_to_1", "impacts", "notes"),
    *("action", "title", "difficulty_1_to_5", "score_0_to_1", "expected_vs_baseline_factor", "op", "ops", "children"),
    *("solution_ref", "solution_id", "eval", "metrics", "score", "status", "node", "patch"),
)
LEAF = st.sampled_from(["", "a", "7", "nan", "\ud800", "passed", None, True, 0, -3, 4.5, 99, 1e999, 10**400])
SMALL = LEAF | st.dictionaries(st.sampled_from(KEYS), LEAF, max_size=4) | st.lists(LEAF, max_size=2)
ANY = SMALL | st.dictionaries(st.sampled_from(KEYS), SMALL, max_size=3)
FIELDS = st.dictionaries(st.sampled_from(KEYS), ANY, max_size=8)
NAMES = st.sampled_from(["root", "a", "b", "c", "nowhere", ""])
OPS = st.fixed_dictionaries(
    {"op": st.sampled_from(["update_node", "insert_node", "split_node", "delete_node", "move"]) | ANY},
    optional={
        "node_id": NAMES | ANY,
        "parent_id": NAMES | ANY,
        "node": FIELDS | ANY,
        "patch": FIELDS | ANY,
        "parent_patch": FIELDS | ANY,
        "children": st.lists(FIELDS | ANY, max_size=9) | ANY,
        "parent_solution_id": ANY,
    },
)


def anything(value: dict[str, Any]) -> bool:
    return True


def small_tree() -> Tree:
    nodes: list[dict[str, Any]] = [
        {"node_id": name, "parent_id": parent, "action": {"title": f"try {name}", "score_0_to_1": 0.5}}
        for name, parent in (("a", "root"), ("b", "a"), ("c", "root"))
    ]
    tree = tree_of({"decision_tree": {"nodes": nodes}})
    return tree.closed_by("a", Attempt(Program("p", "code"), Outcome(True, 0.5, 0.5, 0.5, 2.0, "passed"), 1))


# ---------------------------------------------------------------------------------------------- finding JSON


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure:\n```json\n{"a": {"b": "}"}}\n```\nDone {x}', {"a": {"b": "}"}}),
        ('{not json} {"a": "\\"}{"}', {"a": '"}{'}),
        ('"quoted { before" {"a": 1}', None),
        ('open { {"a": 1}', None),
        ("[1, 2]", None),
        ("", None),
        ("}}}{", None),
    ],
)
def test_the_first_pair_of_braces_that_parses_counts(text: str, found: object) -> None:
    assert first_object(text, anything) == found


def test_scanning_finds_what_pairing_hides() -> None:
    text = 'open { {"note": 1} "half { a string" {"plan": {"ops": []}}'
    assert first_object(text, is_script) is None
    assert first_object(text, is_script, scan_all=True) == {"ops": []}
    assert first_object('{"note": 1}', is_script, scan_all=True) is None
    assert first_object('{"plan": {"ops": []}}', is_script, scan_all=True) == {"ops": []}


@pytest.mark.parametrize("scan_all", [False, True])
def test_depth_and_size_hurt_nobody(scan_all: bool) -> None:
    for text in (
        '{"a":' * 5000,
        "{" * 20_000,
        "{" * 3000 + "?" + "}" * 3000,
        f'{{"a": {"9" * 5000}}}',
        '{"a": [' * 1000,
    ):
        assert first_object(text, anything, scan_all) is None


@given(st.text(alphabet='{}[]",:\\a1 \n', max_size=60), st.booleans())
def test_no_text_raises(text: str, scan_all: bool) -> None:
    found = first_object(text, anything, scan_all)
    assert found is None or isinstance(found, dict)


# ---------------------------------------------------------------------------------------------- trees


@given(st.dictionaries(st.sampled_from(["decision_tree", "kernel_summary", "open_questions"]), ANY))
def test_any_object_is_a_tree(raw: dict[str, Any]) -> None:
    tree = tree_of(raw)
    assert tree.find(tree.root) is not None and tree.find(tree.active) is not None


@settings(max_examples=40)
@given(st.lists(FIELDS | ANY, max_size=6), ANY, ANY)
def test_every_node_hangs_somewhere_and_every_number_is_within_bounds(nodes: list[Any], root: Any, active: Any) -> None:
    tree = tree_of({"decision_tree": {"root_id": root, "active_leaf_id": active, "nodes": nodes}})
    known = {node.id for node in tree.nodes}
    roots = [node for node in tree.nodes if node.parent is None]
    assert [node.id for node in roots] == [tree.root]
    for node in tree.nodes:
        assert node.parent is None or node.parent in known
        assert 0 <= node.rating <= 10 and 0 <= node.confidence <= 1
        assert 0 <= node.action.score <= 1 and 1 <= node.action.difficulty <= 5
        assert node.action.expected is None or math.isfinite(node.action.expected)
        json.dumps(json_of(node)).encode()
    tree.frontier()
    tree.best()
    for node in tree.nodes:
        assert tree.path(node.id)


@settings(max_examples=40)
@given(FIELDS)
def test_a_node_survives_being_written_and_read(raw: dict[str, Any]) -> None:
    node = node_of(raw, "n0")
    assert node_of(json_of(node), "other") == node


@pytest.mark.parametrize(
    ("value", "read"), [(3, 3), ("4.5", 4.5), (99, 5), (-1, 1), ("hard", 3), (None, 3), ("nan", 3), (1e400, 3), ([], 3)]
)
def test_numbers_are_clamped_and_nonsense_is_the_default(value: object, read: float) -> None:
    assert number(value, 1, 5, 3) == read


def test_half_a_character_does_not_reach_a_prompt() -> None:
    node = node_of(json.loads('{"node_id": "\\ud800", "notes": "\\udfff x"}'), "n0")
    assert (node.id, node.notes) == ("?", "? x")


# ---------------------------------------------------------------------------------------------- edits


@settings(max_examples=40)
@given(st.lists(OPS | ANY, max_size=6), st.booleans())
def test_no_script_raises_and_none_does_what_it_must_not(ops: list[Any], careful: bool) -> None:
    before = small_tree()
    rules = Rules(reject_unknown_solutions=careful, unique_ids=careful)
    after, report = apply(before, {"ops": ops}, 3, rules)
    assert len(after.nodes) <= len(before.nodes) + NEW_NODES
    assert after.find("root") is not None and after.find("a") is not None
    root = after.find("root")
    assert root is not None and (root.decision, root.choice, root.parent) == (None, None, None)
    assert sum(report.applied.values()) + sum(report.skipped.values()) + report.bad_ops >= len(ops) - sum(
        isinstance(op, dict) and op.get("op") == "split_node" for op in ops
    )
    if careful:
        assert [node.id for node in after.nodes if node.closed] == ["a"]
        assert len({node.id for node in after.nodes}) == len(after.nodes)


def test_objects_of_a_node_are_patched_key_by_key() -> None:
    patch = {"action": {"score_0_to_1": 0.9}, "impacts": {"register_pressure": {"rating_0_to_10": 4}}, "node_id": "x"}
    ops = [{"op": "update_node", "node_id": "b", "patch": patch}]
    after, _ = apply(small_tree(), {"ops": ops, "active_leaf_id": "b"}, 1, Rules())
    node = after.find("b")
    assert node is not None and after.active == "b"
    assert (node.action.title, node.action.score, node.impacts["register_pressure"].rating) == ("try b", 0.9, 4)


def test_a_child_remembers_the_program_it_is_made_from() -> None:
    op = {"op": "insert_node", "parent_id": "a", "node": {"node_id": "d"}}
    after, _ = apply(small_tree(), {"ops": [op]}, 1, Rules())
    child = after.find("d")
    assert child is not None and child.solution.parent == "p" and not child.closed


def test_a_long_chain_of_nodes_is_walked_quickly() -> None:
    solved = {"solution_ref": {"solution_id": "s"}, "action": {"title": "t"}}
    chain = [{"node_id": str(at), "parent_id": str(at - 1), **solved} for at in range(600)]
    leaves = [{"node_id": f"open{at}", "parent_id": str(at), "action": {"title": "t"}} for at in range(600)]
    tree = tree_of({"decision_tree": {"nodes": chain + leaves}})
    began = time.monotonic()
    assert views.frontier(tree, False, 1200).startswith("- open0 ")
    assert time.monotonic() - began < 2
