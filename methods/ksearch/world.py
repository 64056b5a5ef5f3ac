"""The world model at work: the model is asked for trees and edits, and what it answers is checked and applied."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Literal

from methods.ksearch.edits import Report, apply, is_script
from methods.ksearch.json_text import first_object
from methods.ksearch.normalise import tree_of
from methods.ksearch.ports import CallFailed, Ports, WorldQuestion
from methods.ksearch.rules import Rules
from methods.ksearch.tree import Action, Attempt, Node, Solution, Tree

ENOUGH_ACTIONS = 3
GOOD_VALUE = 0.5
EASY = 5
"""Below this difficulty a child counts as a way on."""
MORE_OF_THE_BEST = Action("target the top bottleneck", difficulty=2, score=0.6)
MORE_OF_THIS = Action("target the top bottleneck", difficulty=2, score=0.35)


class WorldModel:
    """The tree and the calls that change it. `tree` is None until a first answer could be read."""

    def __init__(self, ports: Ports, rules: Rules, seed: Attempt | None) -> None:
        self.tree: Tree | None = None
        self._ports, self._rules, self._seed = ports, rules, seed

    def start(self) -> None:
        """The first question, asked once. Raises `CallFailed` where there is no seed."""
        try:
            self._init(self._seed)
        except CallFailed:
            if self._seed is None and not self._rules.survive_model_errors:
                raise

    def propose(self, round_: int, last: Attempt | None) -> Tree | None:
        """The tree with enough to do, as far as the model gives it; `last` is the newest attempt."""
        if self.tree is None:
            self._start_again(round_)
        if self.tree is None:
            return None
        if self._has_enough(self.tree):
            self._ports.note("propose_skipped", round=round_)
            return self.tree
        if self._proposals(self.tree, round_, last):
            self._extend_best(round_)
        return self.tree

    def attach(self, node: Node, attempt: Attempt) -> None:
        """Close the node with the cycle's best program."""
        assert self.tree is not None
        self._ports.note("attach", node=node.id, attempt=attempt)
        self._put(self.tree.closed_by(node.id, attempt), "attach")

    def refine(self, node: Node, attempt: Attempt) -> None:
        """Let the model learn from a success. Raises `CallFailed`."""
        outcome = attempt.outcome
        if outcome.latency_ms is None and outcome.speedup is None and not self._rules.refine_without_latency:
            self._ports.note("refine_skipped")
            return
        solved = self._solved()
        errors: tuple[str, ...] = ()
        for turn in range(1, self._rules.world_retries + 2):
            before = self.tree
            question = WorldQuestion("refine", attempt.round, turn, self.tree, node, attempt, errors)
            report = self._edited(question, "raise")
            errors = ("unparsable",) if report is None else self._objections(node, solved, report)
            self._ports.note("verdict", of="refine", ok=not errors, errors=list(errors))
            if not errors:
                return
            if self._rules.retry_from_clean_tree:
                self._put(before, "edit")
        self._child_of(node.id, MORE_OF_THIS, attempt.round, "refine")

    def too_hard(self, node: Node, last: Attempt | None, round_: int) -> None:
        """Let the model learn from a failure; whatever it writes is applied."""
        self._edited(WorldQuestion("too_hard", round_, 1, self.tree, node, last), "ignore")
        now = self.tree.find(node.id) if self.tree is not None else None
        if self._rules.lower_failed_actions and now is not None and now.action.score >= node.action.score:
            assert self.tree is not None
            lowered = replace(now, action=replace(now.action, score=now.action.score / 2))
            self._put(self.tree.replaced(now, lowered), "too_hard")

    # ------------------------------------------------------------------------------------------ the first question

    def _init(self, seed: Attempt | None) -> None:
        question = WorldQuestion("init", shown=self._seed if self._rules.seed_in_init else None)
        raw = first_object(self._ports.plan(question), lambda value: True, self._rules.scan_all_objects)
        if raw is None:
            return
        tree = tree_of(raw)
        if self._rules.reject_unknown_solutions:
            tree = replace(tree, nodes=tuple(replace(node, solution=Solution()) for node in tree.nodes))
        self._put(tree if seed is None else tree.closed_by(tree.root, seed), "init")

    def _start_again(self, round_: int) -> None:
        """The original forgets the seed here."""
        with suppress(CallFailed):
            self._init(self._seed if self._rules.seed_kept_on_bad_init else None)
        if self.tree is None:
            self._ports.note("propose_no_tree", round=round_)

    # ------------------------------------------------------------------------------------------ proposals

    def _has_enough(self, tree: Tree) -> bool:
        return len(tree.frontier()) >= ENOUGH_ACTIONS and not _childless(tree)

    def _proposals(self, before: Tree, round_: int, last: Attempt | None) -> bool:
        """Ask up to three times; whether the step goes on to the best node's child."""
        errors: tuple[str, ...] = ()
        for turn in range(1, self._rules.world_retries + 2):
            clean = self.tree
            report = self._edited(WorldQuestion("propose", round_, turn, self.tree, None, last, errors), "ignore")
            if report is None and not self._rules.retry_unparsable_propose:
                self._put(before, "propose")
                return False
            assert self.tree is not None
            good = report is not None and any(node.action.score > GOOD_VALUE for node in self.tree.frontier())
            errors = () if good else ("unparsable",) if report is None else ("no_good_action",)
            self._ports.note("verdict", of="propose", ok=good, errors=list(errors))
            if good:
                break
            if self._rules.retry_from_clean_tree:
                self._put(clean, "edit")
        return True

    def _extend_best(self, round_: int) -> None:
        assert self.tree is not None
        best = self.tree.best()
        if best is not None and _childless(self.tree):
            self._child_of(best.id, MORE_OF_THE_BEST, round_, "propose")

    # ------------------------------------------------------------------------------------------ edits

    def _edited(self, question: WorldQuestion, on_failure: Literal["raise", "ignore"]) -> Report | None:
        """Ask for a script and apply it; None if there was none."""
        assert self.tree is not None
        try:
            text = self._ports.plan(question)
        except CallFailed:
            if on_failure == "raise" and not self._rules.survive_model_errors:
                raise
            return None
        script = first_object(text, is_script, self._rules.scan_all_objects)
        if script is None:
            return None
        after, report = apply(self.tree, script, question.round, self._rules)
        self._ports.note("edit", report=report)
        self._put(after, "edit")
        return report

    def _objections(self, node: Node, solved: dict[str, str | None], report: Report) -> tuple[str, ...]:
        assert self.tree is not None
        changed = any((now := self.tree.find(key)) is None or now.solution.id != value for key, value in solved.items())
        childless = not self.tree.open_children(node.id, EASY)
        named = (("solved_changed", changed), ("no_child", childless))
        return (*(name for name, wrong in named if wrong), *report.errors)

    def _solved(self) -> dict[str, str | None]:
        assert self.tree is not None
        return {node.id: node.solution.id for node in reversed(self.tree.nodes) if node.closed}

    def _child_of(self, identity: str, action: Action, round_: int, by: str) -> None:
        """A general child, so that there is a way on; its id is free."""
        assert self.tree is not None
        parent = self.tree.find(identity)
        if parent is None or (by == "refine" and self.tree.open_children(identity, EASY)):
            return
        names = (f"gen-more-r{round_}" + (f"-{count}" if count else "") for count in range(len(self.tree.nodes) + 1))
        name = next(one for one in names if self.tree.find(one) is None)
        child = Node(name, identity, rating=parent.rating, action=action, solution=Solution(parent=parent.solution.id))
        self._ports.note("generic_child", by=by, parent=identity)
        self._put(self.tree.with_child(child), by)

    def _put(self, tree: Tree | None, after: str) -> None:
        self.tree = tree
        if tree is not None:
            self._ports.note("tree", after=after, tree=tree)


def _childless(tree: Tree) -> bool:
    """Whether the best program has nothing built on it to try."""
    best = tree.best()
    return best is not None and not tree.open_children(best.id)
