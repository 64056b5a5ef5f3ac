"""What can happen in a trial: the lines of its ledger, and the port through which views are told of them."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter

from suite.types import Candidate, Evaluation, Frozen, Prediction, Spent, TrialSpec, Usage, Workload


class TrialStarted(Frozen):
    """First line of a ledger. `heldout_commitment` is the SHA-256 of the edition's held-out seed."""

    kind: Literal["trial_started"] = "trial_started"
    trial: TrialSpec
    starter: Candidate
    environment: dict[str, str]
    heldout_commitment: str


class TrialResumed(Frozen):
    """A new process went on with the trial; the time since the last line is not charged."""

    kind: Literal["trial_resumed"] = "trial_resumed"
    environment: dict[str, str]


class Message(Frozen):
    role: Literal["system", "user", "assistant"]
    content: str


class ModelRequested(Frozen):
    """Written before a model call, so that tokens of a call whose reply is lost are still charged."""

    kind: Literal["model_requested"] = "model_requested"
    call: int
    request: str
    """Digest of messages and parameters: the key for replay."""
    reserved_tokens: int
    reserved_usd: float | None = None
    """US dollars at most; None: the model's price is not known."""


class ModelCalled(Frozen):
    kind: Literal["model_called"] = "model_called"
    call: int
    request: str
    messages: tuple[Message, ...]
    reply: str
    finish_reason: str = "stop"
    usage: Usage
    usd: float | None
    usage_is_bound: bool = False
    """The server reported no usage: what is charged is an upper bound."""
    note: str = ""
    """What of the race's sampling policy the server did not accept."""
    seconds: float
    waited_s: float = 0.0
    spent: Spent


class Evaluated(Frozen):
    """A verdict. Number 0 is the starter, which is not charged."""

    kind: Literal["evaluated"] = "evaluated"
    number: int
    candidate: Candidate
    parent: str | None = None
    note: str = ""
    predicted: Prediction | None = None
    """What the method expected, said before the verdict was known."""
    evaluation: Evaluation
    spent: Spent


class Refunded(Frozen):
    """An evaluation or call was lost by a failure of ours and will be tried again, uncharged."""

    kind: Literal["refunded"] = "refunded"
    what: Literal["evaluation", "model_call"]
    subject: str
    reason: str
    attempt: int
    spent: Spent


class MethodEnded(Frozen):
    """The method's process is gone: of itself (exit code 0), by the budget, by a failure, or stopped."""

    kind: Literal["method_ended"] = "method_ended"
    reason: str
    exit_code: int | None
    log: str = ""
    spent: Spent | None = None


class TrialSuspended(Frozen):
    """The trial cannot go on now (three failures of ours in a row, or the user stopped it); it can be resumed."""

    kind: Literal["trial_suspended"] = "trial_suspended"
    reason: str


class ChampionMeasured(Frozen):
    """The re-measurement that is ranked: fresh secret seeds, search and held-out workloads, outside the budget."""

    kind: Literal["champion_measured"] = "champion_measured"
    candidate: str
    heldout: tuple[Workload, ...]
    evaluation: Evaluation


class TrialFinished(Frozen):
    """Last line of a ledger."""

    kind: Literal["trial_finished"] = "trial_finished"
    reason: str
    champion: str | None
    spent: Spent


Event = Annotated[
    TrialStarted
    | TrialResumed
    | ModelRequested
    | ModelCalled
    | Evaluated
    | Refunded
    | MethodEnded
    | TrialSuspended
    | ChampionMeasured
    | TrialFinished,
    Field(discriminator="kind"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads an event from its JSON form."""


class Recorder(Protocol):
    """A view of ledgers (MLflow, a live table). It is fenced: an exception from it never hurts a trial."""

    def record(self, trial: str, seq: int, event: Event) -> None:
        """Take in line `seq` (from 0) of the ledger of `trial`; the same line may come twice and must count once."""
