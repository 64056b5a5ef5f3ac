"""What the search asks of the world: plans, kernels and verdicts; and the questions as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from methods.ksearch.tree import Attempt, Node, Outcome, Program, Tree


class CallFailed(Exception):
    """The model gave no answer to this question: the prompt was refused."""


class UnusableReplies(CallFailed):
    """As many answers in a row as are allowed held no kernel."""


@dataclass(frozen=True)
class WorldQuestion:
    """A call to the model as world model. `turn` counts tries from 1, `shown` is the only code in the prompt."""

    kind: Literal["init", "propose", "refine", "too_hard"]
    round: int = 0
    turn: int = 1
    tree: Tree | None = None
    node: Node | None = None
    shown: Attempt | None = None
    errors: tuple[str, ...] = ()
    """Why the script before was rejected."""


@dataclass(frozen=True)
class CodeQuestion:
    """A call to the model as programmer. `base` is known to be good, `last` is what it edits."""

    kind: Literal["action", "debug", "improve"]
    tree: Tree
    node: Node
    round: int
    attempt: int
    base: Attempt | None
    last: Attempt | None
    stall: int
    below: int


class Ports(Protocol):
    """The search's only view of anything else."""

    def plan(self, question: WorldQuestion) -> str:
        """The answer's text. Raises `CallFailed`."""

    def write(self, question: CodeQuestion) -> Program | None:
        """The kernel of the answer, None if it holds none. Raises `CallFailed`."""

    def judge(self, program: Program, question: CodeQuestion) -> Outcome:
        """The verdict; what it costs is the judge's business."""

    def note(self, event: str, **facts: object) -> None:
        """Told of every decision."""
