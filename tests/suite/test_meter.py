"""No interleaving of calls overruns a budget; what is given back is whole; a ledger rebuilds its meter."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.errors import BudgetExhausted, UserError
from suite.events import Evaluated, Event, Message, ModelCalled, ModelRequested, Refunded, TrialResumed
from suite.meter import MIN_OUTPUT_TOKENS, Meter, Reservation, cost, prompt_bound
from suite.scripted import ScriptedEvaluator
from suite.types import Budget, Job, Price, Spent, Tier, Usage
from tests.suite.stage import STARTER, task

PRICE = Price(input=2.0, output=10.0, cached_input=0.2)
VERDICT = ScriptedEvaluator().evaluate(Job(task=task(), candidate=STARTER, tier=Tier.SEARCH))


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


Step = tuple[str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["evaluate", "verdict", "lose", "ask", "reply", "drop"]), st.integers(0, 4000), st.floats(0, 1)
    ),
    max_size=60,
)


def play(meter: Meter, steps: list[Step], check: Callable[[], None]) -> list[Reservation]:
    """Follow the steps as several threads could interleave them; returns what is still reserved."""
    judging, asked = 0, list[Reservation]()
    for kind, size, share in steps:
        try:
            if kind == "evaluate":
                meter.reserve_evaluation()
                judging += 1
            elif kind == "ask":
                held = meter.reserve_call(size, 1000)
                asked += [held] if held else []
        except BudgetExhausted:
            pass
        if kind in ("verdict", "lose") and judging:
            judging -= 1
            (meter.settle_evaluation if kind == "verdict" else meter.release_evaluation)()
        elif kind in ("reply", "drop") and asked:
            held = asked.pop(size % len(asked))
            used = int(share * (held.tokens - held.max_output))
            usage = Usage(input=used, cached=used // 2, output=int(share * held.max_output))
            meter.settle_call(held, usage) if kind == "reply" else meter.release_call(held)
        check()
    return asked


@settings(deadline=None)
@given(
    steps=STEPS,
    evaluations=st.integers(1, 10) | st.none(),
    tokens=st.integers(1, 20_000) | st.none(),
    usd=st.floats(0.0001, 0.1) | st.none(),
)
def test_no_interleaving_overruns_a_budget(
    steps: list[Step], evaluations: int | None, tokens: int | None, usd: float | None
) -> None:
    budget = Budget(evaluations=evaluations, tokens=tokens, usd=usd, wall_s=1e9)
    meter = Meter(budget, PRICE)

    def within() -> None:
        spent, left = meter.spent, meter.left()
        assert evaluations is None or spent.evaluations <= evaluations
        assert tokens is None or spent.usage.total <= tokens
        assert usd is None or spent.usd is None or spent.usd <= usd + 1e-12
        assert all(value is None or value >= 0 for value in (left.evaluations, left.tokens, left.usd))

    play(meter, steps, within)


@settings(deadline=None)
@given(steps=STEPS)
def test_what_is_given_back_is_whole(steps: list[Step]) -> None:
    meter = Meter(Budget(evaluations=5, tokens=10_000, usd=0.05), PRICE)
    before = meter.left()
    undone = [step for step in steps if step[0] in ("evaluate", "lose", "ask", "drop")]
    for held in play(meter, undone, lambda: None):
        meter.release_call(held)
    after = meter.left()
    assert after.tokens == before.tokens and after.usd == pytest.approx(before.usd)
    assert meter.spent == Spent()


def test_threads_together_get_exactly_the_budget() -> None:
    meter = Meter(Budget(evaluations=100))
    got: list[int] = []

    def work() -> None:
        try:
            while True:
                meter.reserve_evaluation()
                got.append(1)
                meter.settle_evaluation()
        except BudgetExhausted:
            pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == meter.spent.evaluations == 100


def test_a_call_waits_for_others_rather_than_be_cut_short() -> None:
    meter = Meter(Budget(tokens=2000))
    first = meter.reserve_call(100, 1000)
    assert first is not None and first.max_output == 1000
    assert meter.reserve_call(100, 1000) is None
    meter.settle_call(first, Usage(input=50, output=50))
    second = meter.reserve_call(100, 1000)
    assert second is not None and second.max_output == 1000


def test_the_last_call_is_cut_to_what_is_left_and_then_the_budget_is_spent() -> None:
    meter = Meter(Budget(tokens=1500))
    last = meter.reserve_call(100, 5000)
    assert last is not None and last.max_output == 1400
    meter.settle_call(last, Usage(input=90, output=1200))
    with pytest.raises(BudgetExhausted, match="tokens"):
        meter.reserve_call(0, 5000)
    assert meter.left().tokens == 210 < MIN_OUTPUT_TOKENS


def test_dollars_are_reserved_at_the_full_price() -> None:
    meter = Meter(Budget(usd=0.01), PRICE)
    held = meter.reserve_call(1000, 5000)
    assert held is not None and held.max_output == 800 and held.usd == pytest.approx(0.01)
    assert meter.settle_call(held, Usage(input=1000, cached=500, output=100)) == pytest.approx(0.0021)
    assert meter.left().usd == pytest.approx(0.0079)


def test_dollars_without_a_price_are_refused() -> None:
    with pytest.raises(UserError, match="price is not known"):
        Meter(Budget(usd=1.0))


def test_a_price_of_nothing_for_output_does_not_make_input_free() -> None:
    meter = Meter(Budget(usd=0.001), Price(input=1000.0, output=0.0))
    with pytest.raises(BudgetExhausted, match="usd"):
        meter.reserve_call(10, 1000)


def test_what_a_cache_charges_on_top_is_reserved() -> None:
    held = Meter(Budget(usd=1.0), Price(input=1.0, output=1.0, cached_input=50.0)).reserve_call(1000, 1000)
    assert held is not None and held.usd == pytest.approx(0.051)


def test_an_unknown_price_is_no_price_of_zero() -> None:
    meter = Meter(Budget(tokens=10_000))
    assert meter.spent.usd == 0.0
    held = meter.reserve_call(10, 1000)
    assert held is not None
    assert meter.settle_call(held, Usage(input=1, output=1)) is None
    assert meter.spent.usd is None


def test_cached_input_is_cheaper_only_where_that_price_is_known() -> None:
    usage = Usage(input=1_000_000, cached=500_000)
    assert cost(PRICE, usage) == pytest.approx(1.1)
    assert cost(Price(input=2.0, output=10.0), usage) == pytest.approx(2.0)


def test_a_prompt_is_bounded_by_its_bytes() -> None:
    assert prompt_bound([Message(role="user", content="é" * 10)]) >= 20


def test_waiting_is_not_charged() -> None:
    clock = Clock()
    meter = Meter(Budget(wall_s=100), concurrency=2, clock=clock)
    clock.now += 50
    assert meter.spent.wall_s == 0
    meter.start()
    clock.now += 30
    meter.reserve_evaluation()
    meter.settle_evaluation(queued_s=20)
    assert meter.spent.wall_s == pytest.approx(20) and meter.spent.waited_s == 20
    assert meter.left().wall_s == pytest.approx(80)
    meter.pause()
    clock.now += 1000
    assert meter.spent.wall_s == pytest.approx(20)


def test_time_never_runs_backwards_or_past_its_limit() -> None:
    clock = Clock()
    meter = Meter(Budget(wall_s=10), clock=clock)
    meter.start()
    meter.reserve_evaluation()
    meter.settle_evaluation(queued_s=5)
    assert meter.spent.wall_s == 0
    clock.now += 100
    assert meter.spent.wall_s == 10
    with pytest.raises(BudgetExhausted, match="wall_s"):
        meter.reserve_evaluation()
    with pytest.raises(BudgetExhausted, match="wall_s"):
        meter.reserve_call(1, 1000)


# ---------------------------------------------------------------------------------------------- from a ledger


def evaluated(number: int, spent: Spent) -> Evaluated:
    return Evaluated(number=number, candidate=STARTER, evaluation=VERDICT, spent=spent)


def requested(call: int, meter: Meter) -> tuple[Reservation, ModelRequested]:
    held = meter.reserve_call(100, 1000)
    assert held is not None
    return held, ModelRequested(call=call, request="r", reserved_tokens=held.tokens, reserved_usd=held.usd)


def called(call: int, meter: Meter, held: Reservation) -> ModelCalled:
    usage = Usage(input=70 + call, cached=3, output=31 * call)
    usd = meter.settle_call(held, usage, waited_s=0.25)
    return ModelCalled(
        call=call, request="r", messages=(), reply="", usage=usage, usd=usd, seconds=1, spent=meter.spent
    )


def life(meter: Meter) -> list[Event]:
    """A starter, two calls, one verdict, a repeat, a refund; at the end one call is lost."""
    events: list[Event] = [evaluated(0, meter.spent)]
    for call in (1, 2):
        held, event = requested(call, meter)
        events += [event, called(call, meter, held)]
    meter.count_free()
    meter.reserve_evaluation()
    meter.settle_evaluation(queued_s=0.5)
    events.append(evaluated(1, meter.spent))
    held, event = requested(3, meter)
    meter.count_refund()
    meter.release_call(held)
    refund = Refunded(what="model_call", subject="3", reason="x", attempt=1, spent=meter.spent)
    return [*events, event, refund, requested(4, meter)[1]]


def test_the_ledgers_meter_is_the_one_that_wrote_it() -> None:
    budget = Budget(evaluations=10, tokens=100_000, usd=1.0)
    meter = Meter(budget, PRICE)
    events = life(meter)
    again = Meter.from_entries(budget, events[:-1], PRICE)
    assert again.spent == meter.spent
    assert again.left().evaluations == 9


@pytest.mark.parametrize("price", [PRICE, None])
def test_a_lost_call_is_charged_once_however_often_the_trial_is_resumed(price: Price | None) -> None:
    budget = Budget(evaluations=10, tokens=100_000)
    meter = Meter(budget, price)
    events = life(meter)
    lost = events[-1]
    assert isinstance(lost, ModelRequested)
    second = Meter.from_entries(budget, events, price)
    assert second.spent.unconfirmed_tokens == lost.reserved_tokens
    events += [TrialResumed(environment={})]
    second.reserve_evaluation()
    second.settle_evaluation()
    events += [evaluated(2, second.spent), TrialResumed(environment={})]
    third = Meter.from_entries(budget, events, price)
    assert third.spent == second.spent
    assert (third.spent.usd is None) == (price is None)


def test_the_starter_is_not_charged() -> None:
    assert Meter.from_entries(Budget(evaluations=1), [evaluated(0, Spent())]).left().evaluations == 1
