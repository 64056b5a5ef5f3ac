"""The world model as frozen records: a tree whose closed nodes hold a judged program, whose open ones an intent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property


@dataclass(frozen=True)
class Outcome:
    """What is known of an evaluation. Speedups and `score` are factors over the baseline; `latency_ms` is a mean.

    `score` may stand beside a failure: what the part that passed reached.
    """

    passed: bool
    score: float | None = None
    vs_base: float | None = None
    speedup: float | None = None
    latency_ms: float | None = None
    status: str = ""
    log: str = ""

    @property
    def points(self) -> float | None:
        """The one number programs are compared by; the more direct measure goes first."""
        inverse = 1 / self.latency_ms if self.latency_ms else None
        return next((one for one in (self.score, self.vs_base, self.speedup, inverse) if one is not None), None)


@dataclass(frozen=True)
class Program:
    """A kernel by the name it is remembered under; `text` is what prompts show of it."""

    id: str
    text: str


@dataclass(frozen=True)
class Attempt:
    """A program that was judged in `round` (counted from 1; 0 is the seed)."""

    program: Program
    outcome: Outcome
    round: int = 0


@dataclass(frozen=True)
class Action:
    """What an open node means to do. `score` is its value V in 0..1, `difficulty` 1..5, `expected` a speedup."""

    title: str = ""
    description: str = ""
    difficulty: int = 3
    score: float = 0.0
    expected: float | None = None
    rationale: str = ""


@dataclass(frozen=True)
class Impact:
    """One of the three aspects a node is rated in, 0..10."""

    rating: float = 0.0
    risk: str = ""
    notes: str = ""


@dataclass(frozen=True)
class Solution:
    """The program that closes a node, and the one it was made from."""

    id: str | None = None
    parent: str | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Node:
    """A partial plan. Ids are unique unless the model saw to it that they are not; then the first node counts."""

    id: str
    parent: str | None
    decision: str | None = ""
    choice: str | None = ""
    rating: float = 0.0
    confidence: float = 0.0
    impacts: Mapping[str, Impact] = field(default_factory=dict)
    notes: str = ""
    action: Action = Action()
    solution: Solution = Solution()
    last_updated: int = 0

    @property
    def closed(self) -> bool:
        return self.solution.id is not None

    @property
    def open(self) -> bool:
        return not self.closed and bool(self.action.title)


@dataclass(frozen=True)
class Tree:
    """Nodes in the order they came, the root among them; `active` is the node last worked on."""

    nodes: tuple[Node, ...]
    root: str
    active: str
    summary: str = ""
    questions: tuple[str, ...] = ()

    def find(self, identity: str | None) -> Node | None:
        """The first node of that id."""
        return None if identity is None else self._first.get(identity)

    @cached_property
    def _first(self) -> dict[str, Node]:
        """The first node of every id: models write long chains, along which every step is a search."""
        return {node.id: node for node in reversed(self.nodes)}

    def children(self, identity: str) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.parent == identity)

    def open_children(self, identity: str, below_difficulty: int = 6) -> tuple[Node, ...]:
        return tuple(
            node for node in self.children(identity) if node.open and node.action.difficulty < below_difficulty
        )

    def frontier(self) -> tuple[Node, ...]:
        """The open nodes that can be worked on now: their parent is the root or closed."""
        return tuple(node for node in self.nodes if node.open and self._reachable(node))

    def best(self) -> Node | None:
        """The closed node whose passing program has most points; of equal ones that with the larger id."""
        ranked = [(points, node.id, node) for node in self.nodes if (points := _passed_points(node)) is not None]
        return max(ranked, key=lambda item: item[:2])[2] if ranked else None

    def path(self, identity: str) -> tuple[Node, ...]:
        """From the root to the node, without going round in circles."""
        return tuple(reversed(list(self._upwards(identity))))

    def replaced(self, old: Node, new: Node) -> Tree:
        """The tree with `new` where the very node `old` stands."""
        return replace(self, nodes=tuple(new if node is old else node for node in self.nodes))

    def closed_by(self, identity: str, attempt: Attempt) -> Tree:
        """The first node of that id closed with a program."""
        node = self.find(identity)
        if node is None:
            return self
        parent = self.find(node.parent)
        source = parent.solution.id if parent is not None else None
        solution = Solution(attempt.program.id, source, attempt.outcome)
        closed = replace(node, solution=solution, last_updated=attempt.round)
        return replace(self.replaced(node, closed), active=identity)

    def with_child(self, child: Node) -> Tree:
        return replace(self, nodes=(*self.nodes, child))

    def _reachable(self, node: Node) -> bool:
        if node.parent == self.root:
            return True
        parent = self.find(node.parent)
        return parent is not None and parent.closed

    def _upwards(self, identity: str) -> Iterator[Node]:
        seen: set[str] = set()
        node = self.find(identity)
        while node is not None and node.id not in seen:
            seen.add(node.id)
            yield node
            node = self.find(node.parent)


def _passed_points(node: Node) -> float | None:
    outcome = node.solution.outcome
    return outcome.points if node.closed and outcome is not None and outcome.passed else None
