"""Extracts of tree, brief and verdicts as prompts show them; every cut is the original's."""

from __future__ import annotations

import json
from collections.abc import Iterator

from methods.ksearch.normalise import Json, json_of, outcome_json
from methods.ksearch.tree import Attempt, Node, Outcome, Tree

FRONTIER_NODES = 10
NOTE_CHARS = 140
QUESTIONS = 6
SIBLINGS = 2
HEADER_LINES, SECTION_LINES = 2, 18
KEPT_SECTIONS = ("What must be computed", "What you write", "Arguments", "Workloads")
"""Sections of the brief that edit prompts repeat."""
NO_CODE = "(no base code; start from the task's description)"
NO_LOG = "(omitted; use the performance summary)"


def cut(text: str, limit: int) -> str:
    """The first `limit` characters, wherever that falls."""
    return text[:limit]


def compact(tree: Tree, last: Attempt | None) -> str:
    """The tree's gist as JSON with sorted keys: summary, questions, signals, the active path and its neighbours."""
    path = tree.path(tree.active)
    return dumped(
        {
            "kernel_summary": tree.summary,
            "open_questions": list(tree.questions[:QUESTIONS]),
            "computed_signals": _signals(last),
            "active_path": [_short(node) for node in path],
            "siblings_of_path": [_short(node) for step in path for node in _siblings(tree, step)],
        }
    )


def frontier(tree: Tree, everything: bool, limit: int) -> str:
    """What can be worked on now, one line each, the shallowest first."""
    nodes = sorted(tree.frontier(), key=lambda node: len(tree.path(node.id)))
    if everything:
        return "\n".join(_line(node) for node in nodes)
    return cut("\n".join(_line(node) for node in nodes[:FRONTIER_NODES]), limit)


def path(tree: Tree, node: Node | None, limit: int) -> str:
    """The way from the root to a node (the active one if none is given)."""
    steps = tree.path(node.id if node is not None else tree.active)
    return cut("\n".join(_line(step) for step in steps), limit)


def action(node: Node) -> Json:
    """What a node means to do, in the words of the tree."""
    found: Json = json_of(node)["action"]
    return {"node_id": node.id, **found}


def prediction(node: Node) -> Json:
    """What the tree expected of a node before it was worked on."""
    return {
        "expected_vs_baseline_factor": node.action.expected,
        "confidence": 0.5,
        "rationale": node.action.rationale,
    }


def observed(outcome: Outcome) -> Json:
    """A verdict without its log."""
    return {key: _rounded(value) for key, value in (outcome_json(outcome) or {}).items()}


def performance(name: str, attempt: Attempt | None) -> str:
    """One line: how fast an attempt was, as far as that is known."""
    if attempt is None:
        return f"{name}: none"
    outcome = attempt.outcome
    facts = (
        ("status", outcome.status or ("passed" if outcome.passed else "failed")),
        ("mean_latency_ms", _rounded(outcome.latency_ms)),
        ("vs_baseline", _rounded(outcome.vs_base)),
        ("speedup", _rounded(outcome.speedup)),
        ("score", _rounded(outcome.score)),
    )
    return f"{name}: " + ", ".join(f"{key}={value}" for key, value in facts if value is not None)


def log(attempt: Attempt) -> str:
    """What went wrong; nothing after a pass, whose numbers say more."""
    return NO_LOG if attempt.outcome.passed else attempt.outcome.log or "(no log)"


def compact_brief(brief: str) -> str:
    """The brief's head and the sections an edit needs, each cut to a few lines."""
    head, *sections = brief.split("\n## ")
    kept = ["\n".join(head.strip().split("\n")[:HEADER_LINES])]
    for section in sections:
        title, _, body = section.partition("\n")
        if title.strip() in KEPT_SECTIONS:
            kept.append(f"{title.strip()}:\n" + "\n".join(body.strip().split("\n")[:SECTION_LINES]))
    return "\n\n".join(kept)


def _signals(last: Attempt | None) -> Json:
    return {} if last is None else {"round_index": last.round, "trace": observed(last.outcome)}


def _short(node: Node) -> Json:
    outcome = node.solution.outcome
    return {
        "node_id": node.id,
        "decision": node.decision,
        "choice": node.choice,
        "overall_rating_0_to_10": _rounded(node.rating),
        "confidence_0_to_1": _rounded(node.confidence),
        "solution": None
        if not node.closed
        else {"solution_id": node.solution.id, "eval": outcome and observed(outcome)},
        "action": None
        if not node.action.title
        else {
            "title": node.action.title,
            "difficulty_1_to_5": node.action.difficulty,
            "score_0_to_1": _rounded(node.action.score),
            "expected_vs_baseline_factor": _rounded(node.action.expected),
        },
    }


def _siblings(tree: Tree, step: Node) -> Iterator[Node]:
    """The two best rated neighbours of a step."""
    if step.parent is not None:
        others = [node for node in tree.children(step.parent) if node is not step]
        yield from sorted(others, key=lambda node: (-node.rating, node.id))[:SIBLINGS]


def _line(node: Node) -> str:
    outcome = node.solution.outcome
    facts = [
        f"V={_rounded(node.action.score)}",
        f"difficulty={node.action.difficulty}",
        f"rating={_rounded(node.rating)}",
        f"expected={_rounded(node.action.expected)}",
    ]
    if node.closed and outcome is not None:
        facts.append(f"solved, score={_rounded(outcome.points)}")
    notes = f" | {one_line(node.notes)[:NOTE_CHARS]}" if node.notes else ""
    return f"- {node.id} (under {node.parent}): {one_line(node.action.title) or 'root'} [{', '.join(facts)}]{notes}"


def one_line(text: str) -> str:
    """A text without breaks, so that it can not pose as anything but the line it stands in."""
    return " ".join(text.split())


def _rounded(value: object) -> object:
    """Five significant digits: more are noise, and cost tokens."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def dumped(value: Json) -> str:
    """JSON with sorted keys: the same text for the same content in every run."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
