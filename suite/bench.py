"""The workbench on the trial's side of the door: meters, judges, records and replays."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.asking import Asker
from suite.desk import POLL_S, Desk, Suspended
from suite.errors import BudgetExhausted, InfraError, ModelError
from suite.evaluator import Evaluator
from suite.events import Evaluated, Message
from suite.ledger import Ledger
from suite.memory import Memory
from suite.meter import Meter
from suite.types import (
    Candidate,
    Evaluation,
    Failure,
    Frozen,
    Job,
    Language,
    Prediction,
    Price,
    Status,
    Task,
    Tier,
    TrialSpec,
    Workload,
)
from suite.workbench import EditFormat, Feedback, Left, Model, Reply

REPEATS = 20
"""Repeated candidates in a row that end a trial."""

CALLS = 500
"""Model calls in a row, without a candidate among them, that end a trial: a budget of evaluations alone never would."""

NOTE_LIMIT = 2000

STALL_S = 600.0


class TrialOrder(Frozen):
    """All that a trial needs to run. `folder` gets ledger.jsonl, method.log and scratch/ (the method's).

    `heldout` are the workloads drawn for this edition, `heldout_commitment` the SHA-256 (hex) of the seed they came of.
    """

    spec: TrialSpec
    task: Task
    starter: Candidate
    brief: str
    folder: Path
    heldout: tuple[Workload, ...]
    heldout_commitment: str
    stall_s: float = STALL_S
    """A method that for so long neither gets an answer nor waits for one is ended."""

    @property
    def scratch(self) -> Path:
        """The method's folder."""
        return self.folder / "scratch"


@dataclass(frozen=True)
class _Proposal:
    """A candidate and what the method said of it."""

    candidate: Candidate
    parent: str | None
    note: str
    predicted: Prediction | None


class TrialBench:
    """A `Workbench` over a ledger. Thread-safe; at most `concurrency` paid calls run at once."""

    def __init__(
        self, order: TrialOrder, desk: Desk, evaluator: Evaluator, model: Model | None, stop: threading.Event
    ) -> None:
        self.brief: str = order.brief
        self.starter: Candidate = order.starter
        self.language: Language = order.spec.language
        self.seed: int = order.spec.seed
        self.folder: Path = order.scratch
        self.concurrency: int = order.spec.concurrency
        self.model = order.spec.model
        self.desk = desk
        self._task, self._evaluator, self._stop = order.task, evaluator, stop
        self._asker = _asker(order, desk, model)
        self._judging: dict[str, threading.Event] = {}
        self._repeats = self._calls = 0

    @classmethod
    def over(
        cls, order: TrialOrder, ledger: Ledger, evaluator: Evaluator, model: Model | None, stop: threading.Event
    ) -> TrialBench:
        """The bench as the ledger leaves it."""
        events = [entry.event for entry in ledger.entries]
        price = order.spec.model.price if order.spec.model else Price(input=0, output=0)  # no model, no cost
        meter = Meter.from_entries(order.spec.budget, events, price, order.spec.concurrency)
        memory = Memory(order.task, order.spec.seed, events)
        return cls(order, Desk(ledger, meter, memory, order.spec.concurrency, stop), evaluator, model, stop)

    def evaluate(
        self, candidate: Candidate, parent: str | None = None, note: str = "", predicted: Prediction | None = None
    ) -> Feedback:
        """See `Workbench.evaluate`. Concurrent calls for the same candidate judge it once."""
        with self.desk.guarded():
            self._calls = 0
            while True:
                with self.desk.lock:
                    self.desk.check_open()
                    known = self._recall(candidate.id)
                    if known is not None:
                        return known
                    under_way = self._judging.get(candidate.id)
                    if under_way is None:
                        self.desk.meter.reserve_evaluation()
                        self._judging[candidate.id] = threading.Event()
                        break
                under_way.wait(POLL_S)
            return self._judge(_Proposal(candidate, parent, note[:NOTE_LIMIT], predicted))

    def chat(self, messages: Sequence[Message], edit_format: EditFormat = "whole") -> Reply:
        """See `Workbench.chat`."""
        if self._asker is None:
            raise ModelError("this trial has no model", "a method that asks none", "name a model on the race card")
        with self.desk.guarded():
            with self.desk.lock:
                self._calls += 1
                if self._calls > CALLS:
                    raise BudgetExhausted("calls")
            return self._asker.chat(messages, edit_format)

    def left(self) -> Left:
        """See `Workbench.left`."""
        return self.desk.meter.left()

    def history(self) -> tuple[Feedback, ...]:
        """See `Workbench.history`."""
        with self.desk.lock:
            return self.desk.memory.told()

    def start(self) -> None:
        """A method starts, or starts over: what is recorded is replayed to it, and time begins to count."""
        self._repeats = self._calls = 0
        self.desk.start()

    def end(self, patience_s: float) -> None:
        """The method has ended: see `Desk.drain`; time stands still."""
        self.desk.drain(patience_s)
        self.desk.meter.pause()

    def judge_starter(self) -> Evaluated:
        """Evaluation 0, from the ledger if it passed before. Raises `Suspended`."""
        known = self.desk.memory.starter()
        if known is not None and known.evaluation.status == Status.PASSED:
            return known
        evaluation = self.measure(Job(task=self._task, candidate=self.starter, tier=Tier.SEARCH))
        event = Evaluated(number=0, candidate=self.starter, evaluation=evaluation, spent=self.desk.meter.spent)
        with self.desk.lock:
            self.desk.record(event)
            self.desk.memory.tell(self.starter.id)
        return event

    def measure(self, job: Job) -> Evaluation:
        """A verdict. Failures of ours are recorded and tried again; at last they suspend the trial (`Suspended`)."""
        attempt = 0
        while True:
            if self._stop.is_set():
                raise Suspended("stopped by the user")
            try:
                return self._evaluator.evaluate(job)
            except InfraError as failure:
                attempt += 1
                self.desk.refund("evaluation", job.candidate.id, str(failure), attempt)

    def _recall(self, candidate: str) -> Feedback | None:
        """The free answer to a known candidate; a replayed one is no repeat."""
        known = self.desk.memory.verdict(candidate)
        if known is None:
            return None
        self._repeats = self._repeats + 1 if known.free else 0
        if known.free:
            self.desk.meter.count_free()
        if self._repeats >= REPEATS:
            raise BudgetExhausted("repeats")
        return known

    def _judge(self, proposal: _Proposal) -> Feedback:
        """Judge a candidate for which one evaluation is reserved."""
        settled = False
        try:
            with self.desk.lane():
                evaluation = self._verdict(proposal.candidate)
                with self.desk.lock:
                    self.desk.check_recordable()
                    self.desk.meter.settle_evaluation(evaluation.queued_s)
                    settled = True
                    return self._record(proposal, evaluation)
        finally:
            with self.desk.lock:
                if not settled:
                    self.desk.meter.release_evaluation()
                self._judging.pop(proposal.candidate.id).set()

    def _record(self, proposal: _Proposal, evaluation: Evaluation) -> Feedback:
        event = Evaluated(
            number=self.desk.memory.last_number + 1,
            candidate=proposal.candidate,
            parent=proposal.parent,
            note=proposal.note,
            predicted=proposal.predicted,
            evaluation=evaluation,
            spent=self.desk.meter.spent,
        )
        self.desk.record(event)
        self._repeats = 0
        return self.desk.memory.tell(proposal.candidate.id)

    def _verdict(self, candidate: Candidate) -> Evaluation:
        if candidate.spec.language == self.language:
            return self.measure(Job(task=self._task, candidate=candidate, tier=Tier.SEARCH))
        start = self.desk.memory.starter()
        assert start is not None, "the starter is judged before a method runs"
        written = f"the candidate is written in {candidate.spec.language}, this trial is for {self.language}"
        return _refusal(start.evaluation, candidate, written)


def _asker(order: TrialOrder, desk: Desk, model: Model | None) -> Asker | None:
    if model is None or order.spec.model is None:
        return None
    return Asker(desk, model, order.spec.model.max_output_tokens)


def _refusal(like: Evaluation, candidate: Candidate, detail: str) -> Evaluation:
    """A verdict that needs no judge; task, lane and device are those of `like`."""
    return Evaluation(
        candidate=candidate.id,
        definition=like.definition,
        task_digest=like.task_digest,
        tier=Tier.SEARCH,
        lane=like.lane,
        device=like.device,
        timing_protocol=like.timing_protocol,
        status=Status.POLICY,
        failure=Failure(stage="screen", detail=detail),
    )
