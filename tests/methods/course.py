"""Trials of methods without a judge: a real bench over a real ledger, with verdicts that follow from the dials."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.bench import TrialBench, TrialOrder
from suite.client import GATEWAY, TOKEN, GatewayBench
from suite.errors import TaskError
from suite.evaluator import Evaluator
from suite.events import Evaluated
from suite.gateway import serve
from suite.ledger import Ledger, read
from suite.scripted import ScriptedEvaluator
from suite.tunables import find
from suite.types import Budget, Candidate, Evaluation, Job, MethodSpec, Price
from suite.workbench import Model
from tests.suite import stage

STARTER = stage.candidate(
    "\n".join(
        [
            "constexpr int kUnroll = 4;  // tune: unroll in {1, 2, 4, 8, 16}",
            "constexpr int kSplit = 2;  // tune: split in {1, 2, 3, 4}",
            "constexpr bool kStream = false;  // tune: stream in {false, true}",
            'extern "C" int run(const float* x, float* y, int64_t n) { return 0; }',
            "",
        ]
    )
)
SETTINGS = 40
"""All combinations of the starter's dials."""
PRICE = Price(input=2.0, output=8.0)
"""Of the made-up model, so that a budget may be in dollars."""
EIGHT = Budget(evaluations=8)
BEST = ("16", "3", "true")


class Hill:
    """Judges by the dials: the more of them stand as in `BEST`, the faster. Text without dials gets 1.0."""

    def __init__(self) -> None:
        self._scripted = ScriptedEvaluator()

    def evaluate(self, job: Job) -> Evaluation:
        try:
            dials = find(job.candidate.text())
        except TaskError:
            dials = ()
        speed = 1.0 + sum(dial.current == best for dial, best in zip(dials, BEST, strict=False))
        return _as(job, self._scripted, str(speed))


class AllFail:
    """Passes the first candidate, the starter, and fails every other one."""

    def __init__(self) -> None:
        self._scripted, self._starter = ScriptedEvaluator(), ""

    def evaluate(self, job: Job) -> Evaluation:
        self._starter = self._starter or job.candidate.id
        return _as(job, self._scripted, "1.0" if job.candidate.id == self._starter else "COMPILE_ERROR")


def _as(job: Job, scripted: ScriptedEvaluator, wish: str) -> Evaluation:
    """The verdict the scripted evaluator gives a candidate that wishes for it."""
    wishing = job.model_copy(update={"candidate": stage.candidate(f"// scripted: {wish}")})
    return scripted.evaluate(wishing).model_copy(update={"candidate": job.candidate.id})


def order(
    folder: Path,
    method: MethodSpec,
    budget: Budget = EIGHT,
    starter: Candidate = STARTER,
    seed: int = 1,
    concurrency: int = 1,
) -> TrialOrder:
    """A trial of `method` in the made-up task of the referee's own tests."""
    base = stage.order(folder, budget=budget, price=PRICE)
    spec = base.spec.model_copy(update={"method": method, "seed": seed, "concurrency": concurrency})
    return base.model_copy(update={"spec": spec, "starter": starter})


@contextmanager
def bench(order: TrialOrder, evaluator: Evaluator, model: Model | None = None) -> Iterator[TrialBench]:
    """The bench of a trial in this process, its starter judged."""
    order.scratch.mkdir(parents=True, exist_ok=True)
    with Ledger.open(order.folder / "ledger.jsonl") as ledger:
        opened = TrialBench.over(order, ledger, evaluator, model, threading.Event())
        opened.judge_starter()
        opened.start()
        yield opened


@contextmanager
def door(opened: TrialBench) -> Iterator[GatewayBench]:
    """The bench as a method's process has it, its address and token in this process's environment."""
    with serve(opened) as (url, token), pytest.MonkeyPatch.context() as environment:
        environment.setenv(GATEWAY, url)
        environment.setenv(TOKEN, token)
        with GatewayBench.from_environment() as client:
            yield client


def verdicts(folder: Path) -> list[Evaluated]:
    """The verdicts recorded in a trial's folder, without the starter's."""
    return [entry.event for entry in read(folder / "ledger.jsonl") if isinstance(entry.event, Evaluated)][1:]
