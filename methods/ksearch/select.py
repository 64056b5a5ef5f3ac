"""Which action comes next: a fixed order over the frontier, no dice and no model."""

from __future__ import annotations

from methods.ksearch.tree import Node, Tree

RELAXED_LIMIT = 4
RELAXED_AT = 0.5
"""Once a program reaches this share of the baseline's speed, the relaxed limit holds."""
LIMIT_OF_ZERO = 3


def choose(tree: Tree, max_difficulty: int, keep_higher_limit: bool = False) -> Node | None:
    """The frontier's best by value, then ease, then rating, then id; None if nothing can be worked on.

    Actions harder than the limit compete only when all are.
    """
    frontier = tree.frontier()
    limit = _limit(tree, max_difficulty or LIMIT_OF_ZERO, keep_higher_limit)
    allowed = [node for node in frontier if node.action.difficulty <= limit] or list(frontier)
    return min(allowed, key=_rank, default=None)


def _rank(node: Node) -> tuple[float, int, float, str]:
    return -node.action.score, node.action.difficulty, -node.rating, node.id


def _limit(tree: Tree, limit: int, keep_higher: bool) -> int:
    outcomes = [node.solution.outcome for node in tree.nodes if node.closed]
    ratios = [one.vs_base for one in outcomes if one is not None and one.passed and one.vs_base is not None]
    if max(ratios, default=0.0) < RELAXED_AT:
        return limit
    return max(limit, RELAXED_LIMIT) if keep_higher else RELAXED_LIMIT
