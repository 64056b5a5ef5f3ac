"""Model calls of a trial: reserved before, recorded after, replayed when they were made before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from suite.desk import POLL_S, Desk
from suite.errors import InfraError, ModelError
from suite.events import Message, ModelCalled, ModelRequested, Refunded
from suite.meter import Reservation, prompt_bound
from suite.workbench import EditFormat, Model, Reply


@dataclass(frozen=True)
class _Question:
    key: str
    seed: int
    messages: tuple[Message, ...]
    edit_format: EditFormat


class Asker:
    """Asks one model on behalf of a method; the sampling policy is the race's, whatever the method would like."""

    def __init__(self, desk: Desk, model: Model, max_output_tokens: int) -> None:
        self._desk, self._model, self._max_output, self._calls = desk, model, max_output_tokens, desk.last_call

    def chat(self, messages: Sequence[Message], edit_format: EditFormat) -> Reply:
        """See `Workbench.chat`."""
        desk = self._desk
        with desk.lock:
            desk.check_open()
            key, seed = desk.memory.request(messages, edit_format)
            recorded = desk.memory.reply(key)
        if recorded is not None:
            return recorded
        with desk.lane():
            reservation = self._reserve(messages)
            try:
                return self._answer(_Question(key, seed, tuple(messages), edit_format), reservation)
            except BaseException:
                desk.meter.release_call(reservation)
                raise

    def _reserve(self, messages: Sequence[Message]) -> Reservation:
        bound = prompt_bound(messages)
        while (reservation := self._desk.meter.reserve_call(bound, self._max_output)) is None:
            self._desk.meter.wait(POLL_S)
            self._desk.check_open()
        return reservation

    def _answer(self, question: _Question, reservation: Reservation) -> Reply:
        """Ask until there is an answer. `reservation` is settled on return and still held on any exception."""
        attempt = 0
        while True:
            self._desk.check_open()
            call, started = self._requested(question, reservation), time.monotonic()
            try:
                reply = self._model.chat(
                    question.messages,
                    max_output_tokens=reservation.max_output,
                    seed=question.seed,
                    edit_format=question.edit_format,
                )
            except InfraError as failure:
                attempt += 1
                self._desk.refund("model_call", str(call), str(failure), attempt)
            except ModelError as failure:
                self._refused(call, attempt + 1, failure)
                raise
            else:
                self._called(call, question, reply, reservation, time.monotonic() - started)
                return reply

    def _requested(self, question: _Question, reservation: Reservation) -> int:
        with self._desk.lock:
            self._calls += 1
            self._desk.record(
                ModelRequested(
                    call=self._calls,
                    request=question.key,
                    reserved_tokens=reservation.tokens,
                    reserved_usd=reservation.usd,
                )
            )
            return self._calls

    def _refused(self, call: int, attempt: int, failure: ModelError) -> None:
        """The model is out of reach: no method is to blame, so the trial waits until somebody has seen to it."""
        with self._desk.lock:
            self._desk.meter.count_refund()
            spent = self._desk.meter.spent
            self._desk.record(
                Refunded(what="model_call", subject=str(call), reason=str(failure), attempt=attempt, spent=spent)
            )
            self._desk.suspended = self._desk.suspended or str(failure)

    def _called(self, call: int, question: _Question, reply: Reply, reservation: Reservation, seconds: float) -> None:
        with self._desk.lock:
            self._desk.check_recordable()
            usd = self._desk.meter.settle_call(reservation, reply.usage, reply.waited_s)
            self._desk.record(
                ModelCalled(
                    call=call,
                    request=question.key,
                    messages=question.messages,
                    reply=reply.text,
                    finish_reason=reply.finish_reason,
                    usage=reply.usage,
                    usd=usd,
                    usage_is_bound=reply.usage_is_bound,
                    note=reply.note,
                    seconds=seconds,
                    waited_s=reply.waited_s,
                    spent=self._desk.meter.spent,
                )
            )
