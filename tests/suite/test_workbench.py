"""The bench charges each verdict and reply once, answers repeats free, tries again after our failures, and replays."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from suite.bench import TrialBench
from suite.desk import Suspended
from suite.errors import BudgetExhausted, InfraError, ModelError, Stopped
from suite.events import EVENT, Evaluated, Message, ModelCalled, ModelRequested, Refunded
from suite.feedback import feedback
from suite.ledger import Ledger
from suite.scripted import ScriptedEvaluator, ScriptedModel
from suite.types import Budget, Evaluation, Failure, Job, Language, Prediction, Spent, Status, Tier, Usage
from suite.workbench import EditFormat, Feedback, Model, Reply, Workbench
from tests.suite.stage import HELDOUT, STARTER, candidate, order, task

ASK = [Message(role="user", content="faster, please")]


class Bench:
    """Opens benches over one ledger, one after the other, as resumed trials do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop = threading.Event()
        self._ledgers: list[Ledger] = []

    def open(
        self,
        budget: Budget | None = None,
        evaluator: ScriptedEvaluator | None = None,
        model: Model | None = None,
        concurrency: int = 1,
    ) -> TrialBench:
        self.close()
        trial = order(self.folder, budget=budget or Budget(evaluations=100), concurrency=concurrency)
        ledger = Ledger.open(self.folder / "ledger.jsonl")
        self._ledgers.append(ledger)
        bench = TrialBench.over(trial, ledger, evaluator or ScriptedEvaluator(), model, self.stop)
        bench.judge_starter()
        bench.start()
        return bench

    def events(self, kind: type) -> list[object]:
        return [entry.event for entry in self._ledgers[-1].entries if isinstance(entry.event, kind)]

    def close(self) -> None:
        for ledger in self._ledgers:
            ledger.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def test_the_trials_bench_is_a_workbench(bench: Bench) -> None:
    opened: Workbench = bench.open()
    assert (opened.brief, opened.starter, opened.language) == ("Double every element.", STARTER, Language.CPP)
    assert (opened.seed, opened.concurrency, opened.folder) == (1, 1, bench.folder / "scratch")


def test_a_verdict_is_charged_recorded_and_told(bench: Bench) -> None:
    opened = bench.open(Budget(evaluations=2))
    told = opened.evaluate(candidate("// scripted: 1.5"), parent=STARTER.id, note="n" * 5000)
    assert told.number == 1 and told.passed and told.score == pytest.approx(1.5) and not told.free
    assert [item.uuid for item in told.workloads] == ["small", "large"]
    assert told.workloads[0].baseline_us == 1000 and told.workloads[0].speedup == pytest.approx(1.5)
    assert opened.left().evaluations == 1
    recorded = bench.events(Evaluated)[-1]
    assert isinstance(recorded, Evaluated)
    assert recorded.spent.evaluations == 1 and recorded.parent == STARTER.id and len(recorded.note) == 2000
    assert [item.number for item in opened.history()] == [0, 1]


def test_what_a_method_expects_is_recorded_and_no_other_evaluation_is_paid_for_it(bench: Bench) -> None:
    opened = bench.open()
    for speedup in (1.5, 2.5):  # the same candidate again is answered from memory, whatever is expected now
        opened.evaluate(candidate("// a"), predicted=Prediction(speedup=speedup, value=0.5))
    opened.evaluate(candidate("// b"))
    recorded = [event.predicted for event in bench.events(Evaluated) if isinstance(event, Evaluated)]
    assert recorded == [None, Prediction(speedup=1.5, value=0.5), None]
    old = bench.events(Evaluated)[-1]
    assert isinstance(old, Evaluated)
    assert EVENT.validate_python(old.model_dump(exclude={"predicted"})) == old


def test_the_starter_is_judged_once_and_not_charged(bench: Bench) -> None:
    assert bench.open(Budget(evaluations=1)).left().evaluations == 1
    assert bench.open(Budget(evaluations=1)).left().evaluations == 1
    assert len(bench.events(Evaluated)) == 1


def test_a_repeat_is_free_whatever_is_left(bench: Bench) -> None:
    opened = bench.open(Budget(evaluations=1))
    first = opened.evaluate(candidate("// a"))
    again = opened.evaluate(candidate("// a"))
    assert again == first.model_copy(update={"free": True})
    assert opened.evaluate(STARTER).number == 0
    with pytest.raises(BudgetExhausted, match="evaluations"):
        opened.evaluate(candidate("// b"))
    assert opened.desk.exhausted == "evaluations"
    assert opened.desk.meter.spent.free == 2


def test_twenty_repeats_in_a_row_end_the_trial(bench: Bench) -> None:
    opened = bench.open()
    for round_ in range(2):  # a new candidate begins the count anew
        opened.evaluate(candidate(f"// {round_}"))
        for _ in range(19):
            assert opened.evaluate(candidate("// 0")).free
    with pytest.raises(BudgetExhausted, match="repeats"):
        opened.evaluate(candidate("// 0"))


def test_a_candidate_in_another_language_is_a_charged_refusal(bench: Bench) -> None:
    opened = bench.open(evaluator=ScriptedEvaluator(lost=frozenset(range(2, 99))))
    told = opened.evaluate(candidate("// a", Language.PYTHON))
    assert told.status == Status.POLICY and told.score == 0
    assert told.failure is not None and "this trial is for cpp" in told.failure.detail
    assert opened.left().evaluations == 99


def test_a_failure_of_ours_is_refunded_and_tried_again(bench: Bench) -> None:
    opened = bench.open(Budget(evaluations=1), ScriptedEvaluator(lost=frozenset({2, 3})))
    assert opened.evaluate(candidate("// a")).passed
    refunds = [(event.subject, event.attempt) for event in bench.events(Refunded) if isinstance(event, Refunded)]
    assert refunds == [(candidate("// a").id, 1), (candidate("// a").id, 2)]
    assert opened.desk.meter.spent.refunds == 2 and opened.left().evaluations == 0


def test_three_failures_of_ours_in_a_row_suspend_the_trial(bench: Bench) -> None:
    opened = bench.open(Budget(evaluations=1), ScriptedEvaluator(lost=frozenset({2, 3, 4})))
    with pytest.raises(Suspended, match="3 failures of ours"):
        opened.evaluate(candidate("// a"))
    with pytest.raises(Suspended):
        opened.evaluate(candidate("// b"))
    assert opened.desk.suspended is not None and opened.left().evaluations == 1
    assert bench.open(Budget(evaluations=1)).evaluate(candidate("// a")).passed


def test_a_stop_lets_nothing_new_begin(bench: Bench) -> None:
    opened = bench.open(model=ScriptedModel(["x"]))
    bench.stop.set()
    with pytest.raises(Stopped):
        opened.evaluate(candidate("// a"))
    with pytest.raises(Stopped):
        opened.chat(ASK)


def together(work: Callable[[int], None], threads: int) -> None:
    started = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


class Counting(ScriptedEvaluator):
    """Counts how often each candidate is judged and how many are judged at once."""

    def __init__(self) -> None:
        super().__init__(seconds=0.05)
        self.judged: Counter[str] = Counter()
        self.most = self.now = 0
        self.lock = threading.Lock()

    def evaluate(self, job: Job) -> Evaluation:
        with self.lock:
            self.judged[job.candidate.id] += 1
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            return super().evaluate(job)
        finally:
            with self.lock:
                self.now -= 1


def test_the_same_candidate_from_several_threads_is_judged_once(bench: Bench) -> None:
    evaluator = Counting()
    opened = bench.open(Budget(evaluations=5), evaluator, concurrency=4)
    told: list[Feedback] = []
    together(lambda index: told.append(opened.evaluate(candidate("// the same"))), 4)
    assert evaluator.judged[candidate("// the same").id] == 1
    assert sorted(item.free for item in told) == [False, True, True, True]
    assert {item.number for item in told} == {1}


def test_no_more_than_the_trials_concurrency_runs_at_once(bench: Bench) -> None:
    evaluator = Counting()
    opened = bench.open(Budget(evaluations=8), evaluator, concurrency=2)
    told: list[Feedback] = []
    together(lambda index: told.append(opened.evaluate(candidate(f"// {index}"))), 8)
    assert evaluator.most == 2
    numbers = [event.number for event in bench.events(Evaluated) if isinstance(event, Evaluated)]
    assert numbers == list(range(9))


def test_a_lost_evaluator_is_an_error_of_the_trial(bench: Bench) -> None:
    class Bug(ScriptedEvaluator):
        def evaluate(self, job: Job) -> Evaluation:
            if job.candidate != STARTER:
                raise ZeroDivisionError
            return super().evaluate(job)

    opened = bench.open(Budget(evaluations=1), Bug())
    with pytest.raises(ZeroDivisionError):
        opened.evaluate(candidate("// a"))
    assert isinstance(opened.desk.crash, ZeroDivisionError)
    assert opened.left().evaluations == 1


# ---------------------------------------------------------------------------------------------- model calls


class Recording:
    """A model that writes down how it was asked; fails as often as told before each answer."""

    def __init__(self, failures: Sequence[Exception] = (), usage: Usage | None = None) -> None:
        self.failures, self.usage = list(failures), usage or Usage(input=10, output=5)
        self.seeds: list[int] = []
        self.limits: list[int] = []

    def chat(self, messages: Sequence[Message], *, max_output_tokens: int, seed: int, edit_format: EditFormat) -> Reply:
        self.seeds.append(seed)
        self.limits.append(max_output_tokens)
        if self.failures:
            raise self.failures.pop(0)
        return Reply(text=f"{edit_format} {seed}", usage=self.usage, finish_reason="length", waited_s=0.5)


def test_a_call_is_announced_and_recorded(bench: Bench) -> None:
    opened = bench.open(Budget(tokens=10_000), model=Recording())
    reply = opened.chat(ASK, "search_replace")
    assert reply.text.startswith("search_replace") and reply.finish_reason == "length"
    (requested,), (called,) = bench.events(ModelRequested), bench.events(ModelCalled)
    assert isinstance(requested, ModelRequested) and isinstance(called, ModelCalled)
    assert requested.call == called.call == 1 and requested.request == called.request
    assert requested.reserved_tokens > called.usage.total == 15
    assert called.messages == tuple(ASK) and called.waited_s == 0.5 and called.spent.calls == 1
    assert opened.left().tokens == 10_000 - 15


def test_the_same_question_gets_another_seed_each_time_the_same_in_every_run(bench: Bench, tmp_path: Path) -> None:
    first, second = Recording(), Recording()
    opened = bench.open(model=first)
    for _ in range(3):
        opened.chat(ASK)
    other = Bench(tmp_path / "other")
    again = other.open(model=second)
    for _ in range(3):
        again.chat(ASK)
    other.close()
    assert first.seeds == second.seeds and len(set(first.seeds)) == 3


def test_a_models_passing_failure_is_refunded_and_tried_again(bench: Bench) -> None:
    model = Recording([InfraError("overload")])
    opened = bench.open(Budget(tokens=10_000), model=model)
    assert opened.chat(ASK).text
    assert len(bench.events(Refunded)) == 1 and opened.left().tokens == 10_000 - 15
    assert model.seeds[0] == model.seeds[1]


def test_a_model_out_of_reach_suspends_the_trial_and_costs_nothing(bench: Bench) -> None:
    opened = bench.open(Budget(tokens=10_000), model=Recording([ModelError("no key", "a key", "set it")]))
    with pytest.raises(ModelError):
        opened.chat(ASK)
    assert opened.desk.suspended == "no key\n  expected: a key\n  do: set it"
    assert opened.left().tokens == 10_000
    assert bench.open(Budget(tokens=10_000)).desk.meter.spent.unconfirmed_tokens == 0


def test_a_trial_without_a_model_says_so(bench: Bench) -> None:
    with pytest.raises(ModelError, match="no model"):
        bench.open().chat(ASK)


def test_concurrent_calls_never_overrun_the_tokens(bench: Bench) -> None:
    model = Recording(usage=Usage(input=20, output=200))
    opened = bench.open(Budget(tokens=5000), model=model, concurrency=4)

    def work(index: int) -> None:
        try:
            while True:
                opened.chat([Message(role="user", content=f"{index}")])
        except BudgetExhausted as refusal:
            assert refusal.kind == "tokens"

    together(work, 4)
    spent = opened.desk.meter.spent
    assert 4000 < spent.usage.total <= 5000
    assert max(model.limits) == 1000 and min(model.limits) >= 256


# ---------------------------------------------------------------------------------------------- replay


def test_a_method_that_starts_over_is_answered_from_the_ledger(bench: Bench) -> None:
    def search(opened: TrialBench) -> list[object]:
        told: list[object] = []
        for step in range(3):
            reply = opened.chat(ASK)
            told += [reply.text, opened.evaluate(candidate(f"// {step} {reply.text}")), opened.history()]
            told += [opened.evaluate(candidate(f"// {step} {reply.text}"))]
        return told

    model, evaluator = Recording(), Counting()
    first = search(bench.open(Budget(evaluations=4), evaluator, model))
    opened = bench.open(Budget(evaluations=4), evaluator, model)
    before = len(bench.events(object))
    assert search(opened) == first
    assert len(bench.events(object)) == before and len(model.seeds) == 3
    assert opened.desk.meter.spent.evaluations == 3 and opened.left().evaluations == 1
    assert opened.chat(ASK).text and len(model.seeds) == 4 == len(set(model.seeds))


def test_replayed_verdicts_are_no_repeats(bench: Bench) -> None:
    opened = bench.open()
    for step in range(30):
        opened.evaluate(candidate(f"// {step}"))
    opened = bench.open()
    for step in range(30):
        assert not opened.evaluate(candidate(f"// {step}")).free
    assert opened.evaluate(candidate("// 0")).free
    assert opened.desk.meter.spent.free == 1


def test_repeats_made_again_are_not_counted_again(bench: Bench) -> None:
    opened = bench.open()
    for step in (0, 0, 0, 1):
        opened.evaluate(candidate(f"// {step}"))
    assert opened.desk.meter.spent.free == 2
    opened = bench.open()
    for step in (0, 0, 0, 1, 1):
        opened.evaluate(candidate(f"// {step}"))
    assert opened.desk.meter.spent.free == 3


def test_a_call_whose_reply_was_lost_is_asked_again_with_its_seed_and_charged_twice(bench: Bench) -> None:
    model = Recording([KeyboardInterrupt()])  # type: ignore[list-item]
    opened = bench.open(Budget(tokens=10_000), model=model)
    with pytest.raises(KeyboardInterrupt):
        opened.chat(ASK)
    opened = bench.open(Budget(tokens=10_000), model=model)
    lost = opened.desk.meter.spent.unconfirmed_tokens
    assert lost > 1000
    opened.chat(ASK)
    assert model.seeds[0] == model.seeds[1]
    assert opened.left().tokens == 10_000 - lost - 15


# ---------------------------------------------------------------------------------------------- what is told


def verdict(**changes: object) -> Evaluated:
    job = Job(task=task(), candidate=STARTER, tier=Tier.CHAMPION, heldout=HELDOUT)
    evaluation = ScriptedEvaluator().evaluate(job).model_copy(update=changes)
    return Evaluated(number=1, candidate=STARTER, evaluation=evaluation, spent=Spent())


def test_only_search_workloads_are_told() -> None:
    told = feedback(verdict(), task())
    assert [item.uuid for item in told.workloads] == ["small", "large"]
    assert "held" not in told.model_dump_json()


def test_an_undisclosed_workload_is_named_check() -> None:
    failure = Failure(stage="check", detail="wrong on hidden-edge: 3 elements", workload="hidden-edge")
    told = feedback(verdict(status=Status.INCORRECT_NUMERICAL, failure=failure, measurements=()), task())
    assert told.failure == Failure(stage="check", detail="wrong on check: 3 elements", workload="check")
    assert told.score == 0 and not told.passed


def test_a_search_workload_is_named() -> None:
    failure = Failure(stage="timing", detail="crashed", workload="large")
    told = feedback(verdict(status=Status.RUNTIME_ERROR, failure=failure), task())
    assert told.failure == failure


@pytest.mark.parametrize(("stage", "shown"), [("build", "error: x"), ("check", ""), ("timing", "")])
def test_only_the_compiler_is_quoted(stage: str, shown: str) -> None:
    failure = Failure.model_validate({"stage": stage, "detail": "x"})
    told = feedback(verdict(status=Status.COMPILE_ERROR, failure=failure, log="error: x"), task())
    assert told.log == shown
