"""What a method sees: the Workbench and the values it hands out; and the port behind which a language model answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from suite.events import Message
from suite.types import Candidate, Failure, Frozen, Language, Prediction, Status, Usage

EditFormat = Literal["whole", "search_replace"]


class WorkloadFeedback(Frozen):
    """One search workload a candidate passed: speedup over the baseline with its 95 % interval, median times."""

    uuid: str
    axes: dict[str, int]
    speedup: float
    low: float
    high: float
    candidate_us: float
    baseline_us: float


class Feedback(Frozen):
    """What a method learns of an evaluation: search workloads only.

    `score` is the geometric mean of speedups over the search workloads, 0 unless `status` is PASSED. A failure on an
    undisclosed workload names it "check". `log` is what the compiler said when the build failed, else empty: what a
    candidate prints while it runs could disclose the check workloads. `free`: a repeat, answered from memory.
    """

    number: int
    candidate: str
    status: Status
    score: float
    low: float = 0.0
    high: float = 0.0
    failure: Failure | None = None
    workloads: tuple[WorkloadFeedback, ...] = ()
    log: str = ""
    free: bool = False

    @property
    def passed(self) -> bool:
        return self.status == Status.PASSED


class Reply(Frozen):
    """A model's answer. `finish_reason` is OpenAI's ("stop", "length", ...) or "refused"."""

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"
    waited_s: float = 0.0
    """Seconds waited for the provider's quota and for requests that failed; recorded, not charged."""
    usage_is_bound: bool = False
    """The server reported no usage; `usage` is the number of UTF-8 bytes, which no tokenizer exceeds."""
    note: str = ""
    """What of the race's sampling policy the server did not accept."""


class Left(Frozen):
    """What is left of each budget; None is no limit of that kind."""

    evaluations: int | None = None
    tokens: int | None = None
    usd: float | None = None
    wall_s: float | None = None


class Workbench(Protocol):
    """The one object a method receives. Thread-safe; every call is metered and recorded.

    At most `concurrency` evaluations and model calls run at once; further calls wait for their turn.
    """

    @property
    def brief(self) -> str:
        """The task in words, the same for every method."""

    @property
    def starter(self) -> Candidate:
        """The correct kernel the trial starts from: evaluation 0."""

    @property
    def language(self) -> Language:
        """The language candidates must be written in."""

    @property
    def seed(self) -> int:
        """The method's own dice."""

    @property
    def folder(self) -> Path:
        """The only place the method may write to; empty at every start."""

    @property
    def concurrency(self) -> int:
        """Calls that may run at once."""

    def evaluate(
        self, candidate: Candidate, parent: str | None = None, note: str = "", predicted: Prediction | None = None
    ) -> Feedback:
        """Have a candidate judged. The same candidate again is free. Raises `BudgetExhausted` or `Stopped`.

        `parent` is the id of the candidate it was made from; `note` (cut to 2000 characters) is kept in the ledger,
        and so is `predicted`, what the method expects of it.
        """

    def chat(self, messages: Sequence[Message], edit_format: EditFormat = "whole") -> Reply:
        """Ask the race's model. Raises `BudgetExhausted`, `Stopped` or `ModelError`."""

    def left(self) -> Left:
        """What is left of the budget, calls under way counted as spent in full."""

    def history(self) -> tuple[Feedback, ...]:
        """All verdicts so far in order of their numbers, the starter's (0) first."""


class Method(Protocol):
    """A search method: a frozen dataclass whose fields are its options."""

    def search(self, bench: Workbench) -> None:
        """Propose candidates until done; `BudgetExhausted` and `Stopped` may pass. The ledger knows the best."""


class Model(Protocol):
    """The port behind which a language model answers; its name, effort and temperature are its own business."""

    def chat(self, messages: Sequence[Message], *, max_output_tokens: int, seed: int, edit_format: EditFormat) -> Reply:
        """One answer of at most `max_output_tokens` tokens, reasoning included.

        Raises `ModelError` if the model cannot be reached or refuses the key: the trial is suspended. Raises
        `InfraError` for what may pass (overload, broken connection): tried again. A refusal of this one prompt (too
        long, filtered) is a `Reply` without text whose `finish_reason` is "refused".
        """
