"""What a model writes as a tree, brought into form: every number clamped, every node hung up, all else dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from methods.ksearch.tree import Action, Impact, Node, Outcome, Solution, Tree

Json = dict[str, Any]
ROOT = "root"
IMPACTS = ("memory_bandwidth", "register_pressure", "compute_intensity_and_hw_fit")
PASSED = "passed"
TEXT_LIMIT = 20_000
"""Characters of one field; the views cut far shorter."""


def tree_of(raw: Json) -> Tree:
    """The tree of an answer to the first question. Any object is one, be it only a root."""
    drawn = _object(raw.get("decision_tree"))
    root = _text(drawn.get("root_id")).strip() or ROOT
    listed = drawn.get("nodes")
    numbered = enumerate(listed if isinstance(listed, list) else [])
    nodes = [node_of(item, f"n{index}") for index, item in numbered if isinstance(item, dict)]
    questions = raw.get("open_questions")
    return rehung(
        Tree(
            nodes=tuple(nodes),
            root=root,
            active=_text(drawn.get("active_leaf_id")).strip() or root,
            summary=_text(raw.get("kernel_summary")),
            questions=tuple(_text(one) for one in questions if _text(one)) if isinstance(questions, list) else (),
        )
    )


def rehung(tree: Tree) -> Tree:
    """The tree with one root, made if need be, and nobody without a parent but it."""
    nodes = list(tree.nodes)
    root = next((node for node in nodes if node.id == tree.root), None)
    if root is None:
        root = Node(id=tree.root, parent=None)
        nodes.insert(0, root)
    known = {node.id for node in nodes}
    hung = tuple(
        replace(node, parent=None, decision=None, choice=None)
        if node is root
        else node
        if node.parent in known and node.parent != node.id
        else replace(node, parent=tree.root)
        for node in nodes
    )
    return replace(tree, nodes=hung, active=tree.active if tree.active in known else tree.root)


def node_of(raw: Json, spare_id: str) -> Node:
    """One node; `spare_id` is its id if it names none. Its parent is taken as it stands."""
    rating = number(raw.get("overall_rating_0_to_10"), 0, 10, 0.0)
    return Node(
        id=_text(raw.get("node_id")).strip() or spare_id,
        parent=_text(raw.get("parent_id")).strip() or None,
        decision=_text(raw.get("decision")),
        choice=_text(raw.get("choice")),
        rating=rating,
        confidence=number(raw.get("confidence_0_to_1"), 0, 1, 0.0),
        impacts=dict(_impacts(_object(raw.get("impacts")))),
        notes=_text(raw.get("notes")),
        action=_action(raw.get("action"), rating),
        solution=_solution(_object(raw.get("solution_ref"))),
        last_updated=int(number(raw.get("last_updated_round"), 0, 1e9, 0.0)),
    )


def json_of(node: Node) -> Json:
    """The node as a model writes it: what `node_of` turns into the same node."""
    action, solution = node.action, node.solution
    return {
        "node_id": node.id,
        "parent_id": node.parent,
        "decision": node.decision,
        "choice": node.choice,
        "overall_rating_0_to_10": node.rating,
        "confidence_0_to_1": node.confidence,
        "impacts": {
            name: {"rating_0_to_10": one.rating, "risk": one.risk, "notes": one.notes}
            for name, one in node.impacts.items()
        },
        "notes": node.notes,
        "action": {
            "title": action.title,
            "description": action.description,
            "difficulty_1_to_5": action.difficulty,
            "score_0_to_1": action.score,
            "expected_vs_baseline_factor": action.expected,
            "rationale": action.rationale,
        },
        "solution_ref": {
            "solution_id": solution.id,
            "parent_solution_id": solution.parent,
            "eval": outcome_json(solution.outcome),
        },
        "last_updated_round": node.last_updated,
    }


def outcome_json(outcome: Outcome | None) -> Json | None:
    """An outcome as the tree shows it."""
    if outcome is None:
        return None
    return {
        "status": PASSED if outcome.passed else outcome.status or "failed",
        "latency_ms": outcome.latency_ms,
        "mean_vs_baseline_factor": outcome.vs_base,
        "speedup_factor": outcome.speedup,
        "metrics": {"score": outcome.score},
    }


def number(value: object, low: float, high: float, default: float) -> float:
    """A number, or the spelling of one, within bounds; anything else is the default."""
    found = _finite(value)
    return default if found is None else min(max(found, low), high)


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _factor(value: object) -> float | None:
    """A speedup: a finite number that is not negative."""
    found = _finite(value)
    return found if found is not None and found >= 0 else None


def _action(value: object, rating: float) -> Action:
    """A node that says nothing of an action has V = 0; one that leaves V out gets its rating / 10."""
    if not isinstance(value, dict):
        return Action()
    old = _finite(value.get("difficulty_0_to_3"))
    fallback = 3.0 if old is None else min(max(old, 0), 3) + 1  # an older scale, from 0 to 3
    hard = value.get("difficulty_1_to_5", fallback)
    return Action(
        title=_text(value.get("title")).strip(),
        description=_text(value.get("description")),
        difficulty=int(number(hard, 1, 5, 3.0)),
        score=number(value.get("score_0_to_1"), 0, 1, rating / 10),
        expected=_factor(value.get("expected_vs_baseline_factor")),
        rationale=_text(value.get("rationale")),
    )


def _solution(raw: Json) -> Solution:
    """What stands there, be it true or made up; `eval` is an object as `outcome_json` makes it."""
    judged = raw.get("eval")
    return Solution(
        id=_text(raw.get("solution_id")).strip() or None,
        parent=_text(raw.get("parent_solution_id")).strip() or None,
        outcome=_outcome(judged) if isinstance(judged, dict) else None,
    )


def _outcome(raw: Json) -> Outcome:
    status = _text(raw.get("status")).strip()
    return Outcome(
        passed=status.lower() == PASSED,
        score=_finite(_object(raw.get("metrics")).get("score")),
        vs_base=_finite(raw.get("mean_vs_baseline_factor")),
        speedup=_finite(raw.get("speedup_factor")),
        latency_ms=_finite(raw.get("latency_ms")),
        status=status,
    )


def _impacts(raw: Json) -> Iterator[tuple[str, Impact]]:
    for name in IMPACTS:
        said = _object(raw.get(name))
        rating = number(said.get("rating_0_to_10"), 0, 10, 0.0)
        yield name, Impact(rating, _text(said.get("risk")), _text(said.get("notes")))


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """A string, or a number's spelling; half a character of UTF-16 could be written nowhere."""
    if isinstance(value, str):
        return value[:TEXT_LIMIT].encode(errors="replace").decode()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""
