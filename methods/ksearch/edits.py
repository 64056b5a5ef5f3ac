"""The model's edit scripts: update, insert, split and delete, applied as far as they are admissible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from methods.ksearch.normalise import Json, json_of, node_of, rehung
from methods.ksearch.rules import Rules
from methods.ksearch.tree import Node, Solution, Tree

NEW_NODES = 3
"""Nodes one script may add."""
MOST_CHILDREN = 8
"""Children of a split that are looked at."""
PATCHABLE = ("decision", "choice", "overall_rating_0_to_10", "confidence_0_to_1", "notes", "last_updated_round")
MERGED = ("impacts", "action", "solution_ref")
"""Objects of a node that a patch changes key by key."""


@dataclass(frozen=True)
class Report:
    """What became of a script: edits applied by kind, edits skipped by reason."""

    applied: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    bad_ops: int = 0

    @property
    def errors(self) -> tuple[str, ...]:
        named = (("bad_op", self.bad_ops), ("skipped", sum(self.skipped.values())))
        return tuple(name for name, count in named if count)


def is_script(value: Json) -> bool:
    """Whether an object is an edit script at all."""
    return isinstance(value.get("ops"), list)


def apply(tree: Tree, script: Json, round_: int, rules: Rules) -> tuple[Tree, Report]:
    """The tree after the script, and what of it was done.

    `round_` becomes part of the ids that have to be made.
    """
    editor = _Editor(tree, round_, rules)
    for op in script["ops"]:
        editor.run(op)
    wanted = script.get("active_leaf_id")
    after = editor.tree
    if isinstance(wanted, str) and after.find(wanted) is not None:
        after = replace(after, active=wanted)
    return rehung(after), Report(dict(editor.applied), dict(editor.skipped), editor.bad_ops)


class _Editor:
    """One script at work."""

    def __init__(self, tree: Tree, round_: int, rules: Rules) -> None:
        self.tree = tree
        self.applied: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.bad_ops = 0
        self._round, self._rules = round_, rules
        self._made = self._added = 0

    def run(self, op: object) -> None:
        """Apply one edit, or note why not."""
        op = op if isinstance(op, dict) else {}
        match op.get("op"):
            case "update_node":
                self._count("updated", self._update(_word(op, "node_id"), op.get("patch")))
            case "insert_node":
                self._count("inserted", self._insert(_word(op, "parent_id"), op))
            case "split_node":
                self._split(op)
            case "delete_node":
                self._count("deleted", self._delete(_word(op, "node_id")))
            case _:
                self.bad_ops += 1

    def _count(self, kind: str, trouble: str | None) -> bool:
        if trouble is None:
            self.applied[kind] += 1
        else:
            self.skipped[trouble] += 1
        return trouble is None

    def _update(self, identity: str, patch: object) -> str | None:
        node = self.tree.find(identity)
        if node is None or not isinstance(patch, dict):
            return "no_node"
        before = json_of(node)
        merged = {**before, **{key: patch[key] for key in PATCHABLE if key in patch}}
        for key in MERGED:
            if isinstance(patch.get(key), dict):
                merged[key] = {**(before[key] or {}), **patch[key]}
        after = node_of(merged, node.id)
        if self._rules.reject_unknown_solutions:
            after = replace(after, solution=node.solution)
        if node.id == self.tree.root:
            after = replace(after, decision=node.decision, choice=node.choice)
        self.tree = self.tree.replaced(node, after)
        return None

    def _insert(self, parent_id: str, op: dict[str, Any]) -> str | None:
        parent = self.tree.find(parent_id)
        if parent is None or not isinstance(op.get("node"), dict):
            return "no_parent"
        said = op.get("parent_solution_id")
        if said is not None and said != parent.solution.id:
            return "parent_solution"
        if self._added >= NEW_NODES:
            return "cap"
        self._add(op["node"], parent)
        return None

    def _split(self, op: dict[str, Any]) -> None:
        identity = _word(op, "node_id")
        parent = self.tree.find(identity)
        children = op.get("children")
        if parent is None or not isinstance(children, list):
            self.skipped["no_node"] += 1
            return
        if isinstance(op.get("parent_patch"), dict):
            self._update(identity, op["parent_patch"])
        for child in [one for one in children if isinstance(one, dict)][:MOST_CHILDREN]:
            if self._added >= NEW_NODES:
                self.skipped["cap"] += 1
                return
            self._add(child, parent)
            self.applied["split"] += 1

    def _delete(self, identity: str) -> str | None:
        """Only an unsolved leaf goes."""
        node = self.tree.find(identity)
        if node is None or node.id == self.tree.root or node.closed or self.tree.children(identity):
            return "delete"
        self.tree = replace(self.tree, nodes=tuple(one for one in self.tree.nodes if one is not node))
        return None

    def _add(self, raw: Json, parent: Node) -> None:
        node = node_of(raw, "")
        if not node.id or self.tree.find(node.id) is not None:
            node = replace(node, id=self._new_id())
        solution = replace(node.solution, parent=node.solution.parent or parent.solution.id)
        if self._rules.reject_unknown_solutions:
            solution = Solution(parent=parent.solution.id)
        self.tree = self.tree.with_child(replace(node, parent=parent.id, solution=solution))
        self._added += 1

    def _new_id(self) -> str:
        for identity in self._ids():
            if not self._rules.unique_ids or self.tree.find(identity) is None:
                return identity
        raise AssertionError("there is always another number")

    def _ids(self) -> Iterator[str]:
        while True:
            self._made += 1
            yield f"gen-r{self._round}-{self._made}"


def _word(op: dict[str, Any], key: str) -> str:
    value = op.get(key)
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
