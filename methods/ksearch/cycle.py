"""One cycle: an action worked on attempt after attempt, as a chain of frozen states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from methods.ksearch.ports import CodeQuestion
from methods.ksearch.tree import Attempt, Node, Tree

NO_SCORE = -1.0
Stop = Literal["stall", "below", "budget"]


@dataclass(frozen=True)
class Cycle:
    """`parent` is the program the action starts from, `bar` its score; `start` is the round of the first attempt.

    `stall` counts attempts since the cycle's best was last renewed, `below` those since something passed without
    beating the bar. `lost` attempts got no kernel out of the model: they wear patience, but were not judged.
    """

    tree: Tree
    node: Node
    start: int
    parent: Attempt | None = None
    bar: float = NO_SCORE
    best: Attempt | None = None
    last: Attempt | None = None
    stall: int = 0
    below: int = 0
    attempts: int = 0
    lost: int = 0

    @property
    def best_score(self) -> float:
        points = self.best.outcome.points if self.best is not None else None
        return NO_SCORE if points is None else points

    @property
    def beats_parent(self) -> bool:
        """Whether something passed, and faster than the parent where that has a speed."""
        return self.best is not None and (self.bar <= 0 or self.best_score > self.bar)

    def question(self) -> CodeQuestion:
        """What the model is asked next."""
        first = self.attempts == 0 or self.last is None
        return CodeQuestion(
            kind="action" if first else "improve" if self.best is not None else "debug",
            tree=self.tree,
            node=self.node,
            round=self.start + self.attempts,
            attempt=self.attempts + 1,
            base=self.parent if first else self._base(),
            last=self.last,
            stall=self.stall,
            below=self.below,
        )

    def judged(self, attempt: Attempt, min_gain: float) -> Cycle:
        """The cycle after a verdict."""
        points = attempt.outcome.points
        better = attempt.outcome.passed and points is not None and points > self._wanted(min_gain)
        best = attempt if better else self.best
        if not better and attempt.outcome.passed and points is not None and points > self.best_score:
            best = attempt  # better, but by too little to be more than noise: kept without new patience
        after = replace(self, best=best, last=attempt, stall=0 if better else self.stall + 1)
        return replace(after, below=after._below(), attempts=self.attempts + 1)

    def without_kernel(self) -> Cycle:
        """The cycle after answers that held none."""
        return replace(self, stall=self.stall + 1, below=self._below(), lost=self.lost + 1)

    def stop(self, patience: int, over: bool) -> Stop | None:
        """Why the cycle ends here; `over`: no further attempt is allowed."""
        if self.stall >= patience:
            return "stall"
        if self.below >= patience:
            return "below"
        return "budget" if over else None

    def _wanted(self, min_gain: float) -> float:
        """What a pass must exceed to renew the patience; the first one always does."""
        return self.best_score if self.best is None else self.best_score + min_gain * abs(self.best_score)

    def _below(self) -> int:
        if self.best is None or self.bar <= 0:
            return self.below
        return 0 if self.best_score > self.bar else self.below + 1

    def _base(self) -> Attempt | None:
        """The better of parent and cycle's best; a parent without a positive score is none."""
        if self.bar > 0 and self.best_score <= self.bar and self.parent is not None:
            return self.parent
        return self.best
