"""Counts evaluations, tokens, dollars and seconds of a trial; says no before a budget could be overrun."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from suite.errors import BudgetExhausted, UserError
from suite.events import (
    Evaluated,
    Event,
    Message,
    MethodEnded,
    ModelCalled,
    ModelRequested,
    Refunded,
    TrialFinished,
    TrialResumed,
)
from suite.types import Budget, Price, Spent, Usage
from suite.workbench import Left

MIN_OUTPUT_TOKENS = 256
"""A call whose answer would have to be shorter is not worth making: the budget counts as spent."""

MESSAGE_TOKENS = 16
"""Upper bound of what a chat template adds to each message, and once to the whole."""

MILLION = 1_000_000


@dataclass(frozen=True, eq=False)
class Reservation:
    """What a model call may cost at most; `max_output` is what it must be limited to."""

    max_output: int
    tokens: int
    usd: float | None
    """None: the model's price is not known."""


def prompt_bound(messages: Sequence[Message]) -> int:
    """Tokens a prompt can have at most: no tokenizer makes more tokens than there are UTF-8 bytes."""
    return MESSAGE_TOKENS + sum(MESSAGE_TOKENS + len(message.content.encode()) for message in messages)


def cost(price: Price, usage: Usage) -> float:
    """US dollars of a call; cached input at the full price where no other is known."""
    cached = price.input if price.cached_input is None else price.cached_input
    fresh = max(usage.input - usage.cached, 0)
    return (fresh * price.input + usage.cached * cached + usage.output * price.output) / MILLION


def _dearest_input(price: Price) -> float:
    """What a million tokens of a prompt cost at most: some providers charge more for what they read from a cache."""
    return max(price.input, price.cached_input or 0.0)


class Meter:
    """Thread-safe. What is reserved counts as spent until it is settled (at its true size) or released.

    Time: each of `concurrency` lanes lasts as long as the trial, and what a lane waits for a judge or for the
    provider's quota is not charged, so wall = elapsed - waited / concurrency. Work begun within the limit may end
    after it; the charge stops at the limit.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None = None,
        concurrency: int = 1,
        spent: Spent | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises `UserError` for a budget in dollars without a price."""
        if budget.usd is not None and price is None:
            raise UserError(
                "a budget in US dollars, but the model's price is not known",
                "a model with a price",
                "state the model's price (input, output) on the card, or set a budget of tokens instead",
            )
        self._budget, self._price, self._concurrency, self._clock = budget, price, concurrency, clock
        self._base = spent or Spent()
        self._now = self._base
        self._started: float | None = None
        self._held_evaluations = 0
        self._held: list[Reservation] = []
        self._lock = threading.RLock()
        self._settled = threading.Condition(self._lock)

    @classmethod
    def from_entries(
        cls, budget: Budget, events: Iterable[Event], price: Price | None = None, concurrency: int = 1
    ) -> Meter:
        """The meter as the ledger's events leave it, calls without a recorded reply charged in full."""
        return cls(budget, price, concurrency, spent_in(events))

    def start(self) -> None:
        """A method starts: begin to count time, and repeats anew, for it will make those of its earlier start again."""
        with self._lock:
            self._base = self._now = self._now.model_copy(update={"free": 0})
            self._started = self._clock()

    def pause(self) -> None:
        """Count no more time."""
        with self._lock:
            self._base = self._now = self.spent
            self._started = None

    @property
    def spent(self) -> Spent:
        with self._lock:
            return self._now.model_copy(update={"wall_s": self._wall()})

    def left(self) -> Left:
        """What is left, reservations counted as spent."""
        with self._lock:
            now, budget = self._now, self._budget
            return Left(
                evaluations=_rest(budget.evaluations, now.evaluations + self._held_evaluations),
                tokens=_rest(budget.tokens, self._tokens()),
                usd=None if budget.usd is None else max(budget.usd - self._usd(), 0.0),
                wall_s=None if budget.wall_s is None else max(budget.wall_s - self._wall(), 0.0),
            )

    def check_wall(self) -> None:
        """Raises `BudgetExhausted` once the time is over."""
        with self._lock:
            if self._budget.wall_s is not None and self._wall() >= self._budget.wall_s:
                raise BudgetExhausted("wall_s")

    # ------------------------------------------------------------------------------------------ evaluations

    def reserve_evaluation(self) -> None:
        """Raises `BudgetExhausted`."""
        with self._lock:
            self.check_wall()
            if self.left().evaluations == 0:
                raise BudgetExhausted("evaluations")
            self._held_evaluations += 1

    def settle_evaluation(self, queued_s: float = 0.0) -> None:
        with self._lock:
            self._held_evaluations -= 1
            self._add(evaluations=1, waited_s=queued_s)

    def release_evaluation(self) -> None:
        """Give a reservation back: no verdict came of it."""
        with self._lock:
            self._held_evaluations -= 1

    def count_free(self) -> None:
        """A repeat was answered from memory."""
        with self._lock:
            self._add(free=1)

    def count_refund(self) -> None:
        """A failure of ours cost one attempt."""
        with self._lock:
            self._add(refunds=1)

    # ------------------------------------------------------------------------------------------ model calls

    def reserve_call(self, prompt_tokens: int, max_output: int) -> Reservation | None:
        """Hold the upper bound of a call, its output cut to what is left if need be.

        None: not now, but calls under way may turn out cheaper than they hold; see `wait`. Raises `BudgetExhausted`.
        """
        with self._lock:
            self.check_wall()
            output, kind = self._affordable(prompt_tokens, max_output)
            if output < max_output and self._held:
                return None
            if output < min(MIN_OUTPUT_TOKENS, max_output):
                raise BudgetExhausted(kind)
            reservation = Reservation(output, prompt_tokens + output, self._bound_usd(prompt_tokens, output))
            self._held.append(reservation)
            return reservation

    def settle_call(self, reservation: Reservation, usage: Usage, waited_s: float = 0.0) -> float | None:
        """Charge what the call really took; returns its US dollars (None: no price)."""
        with self._settled:
            self._held.remove(reservation)
            usd = None if self._price is None else cost(self._price, usage)
            total = None if usd is None or self._now.usd is None else self._now.usd + usd
            self._now = self._now.model_copy(update={"usage": self._now.usage + usage, "usd": total})
            self._add(calls=1, waited_s=waited_s)
            self._settled.notify_all()
            return usd

    def release_call(self, reservation: Reservation) -> None:
        """Give a reservation back: the call failed and cost nothing. One that is settled already stays so."""
        with self._settled:
            if reservation in self._held:
                self._held.remove(reservation)
            self._settled.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Until a call is settled or released, or the time is over."""
        with self._settled:
            self._settled.wait(timeout_s)

    # ------------------------------------------------------------------------------------------ arithmetic

    def _affordable(self, prompt: int, wanted: int) -> tuple[int, str]:
        """Output tokens (at most `wanted`) that tokens and dollars allow, and which of them is the tighter."""
        left, kind, output = self.left(), "tokens", wanted
        if left.tokens is not None:
            output = min(output, left.tokens - prompt)
        if left.usd is not None and self._price is not None:
            for_output = left.usd * MILLION - prompt * _dearest_input(self._price)
            each = self._price.output
            by_usd = int(for_output / each) if each > 0 else output if for_output >= 0 else 0
            if by_usd < output:
                output, kind = by_usd, "usd"
        return output, kind

    def _bound_usd(self, prompt: int, output: int) -> float | None:
        if self._price is None:
            return None
        return (prompt * _dearest_input(self._price) + output * self._price.output) / MILLION

    def _tokens(self) -> int:
        held = sum(reservation.tokens for reservation in self._held)
        return self._now.usage.total + self._now.unconfirmed_tokens + held

    def _usd(self) -> float:
        return (self._now.usd or 0.0) + sum(reservation.usd or 0.0 for reservation in self._held)

    def _wall(self) -> float:
        if self._started is None:
            return self._base.wall_s
        waited = (self._now.waited_s - self._base.waited_s) / self._concurrency
        wall = self._base.wall_s + max(self._clock() - self._started - waited, 0.0)
        return wall if self._budget.wall_s is None else min(wall, self._budget.wall_s)

    def _add(
        self, *, evaluations: int = 0, free: int = 0, refunds: int = 0, calls: int = 0, waited_s: float = 0
    ) -> None:
        now = self._now
        update = {
            "evaluations": now.evaluations + evaluations,
            "free": now.free + free,
            "refunds": now.refunds + refunds,
            "calls": now.calls + calls,
            "waited_s": now.waited_s + waited_s,
        }
        self._now = now.model_copy(update=update)


def spent_in(events: Iterable[Event]) -> Spent:
    """What a ledger's events add up to, in their order; a call without a recorded reply costs its whole reservation."""
    spent = Spent()
    pending: dict[int, ModelRequested] = {}
    for event in events:
        match event:
            case ModelRequested():
                pending[event.call] = event
            case ModelCalled():
                pending.pop(event.call, None)
                usd = None if spent.usd is None or event.usd is None else spent.usd + event.usd
                spent = spent.model_copy(
                    update={"calls": spent.calls + 1, "usage": spent.usage + event.usage, "usd": usd}
                )
            case Refunded():
                if event.what == "model_call":
                    pending.pop(int(event.subject), None)
                spent = spent.model_copy(update={"refunds": spent.refunds + 1})
            case Evaluated():
                spent = spent.model_copy(update={"evaluations": spent.evaluations + (event.number > 0)})
            case TrialResumed():
                spent, pending = _lost(spent, pending), {}
        if isinstance(event, ModelCalled | Evaluated | Refunded | MethodEnded | TrialFinished) and event.spent:
            clocks = {"free": event.spent.free, "wall_s": event.spent.wall_s, "waited_s": event.spent.waited_s}
            spent = spent.model_copy(update=clocks)
    return _lost(spent, pending)


def _lost(spent: Spent, pending: dict[int, ModelRequested]) -> Spent:
    """Charge calls whose process died before their reply was recorded: the provider may have billed them."""
    for request in pending.values():
        known = spent.usd is not None and request.reserved_usd is not None
        spent = spent.model_copy(
            update={
                "unconfirmed_tokens": spent.unconfirmed_tokens + request.reserved_tokens,
                "usd": (spent.usd or 0.0) + (request.reserved_usd or 0.0) if known else None,
            }
        )
    return spent


def _rest(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(limit - used, 0)
