"""What runs inside Ray's workers: a judge, the desk that hands out judges, and a trial with its model.

Plain classes; `placement.py` makes actors of them. Their results are values, never exceptions, so that a failure of
ours can be told from a failure of Ray's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from ray_cluster.models import open_model
from suite.errors import InfraError, UserError
from suite.evaluator import Evaluator
from suite.trial import TrialOrder, run_trial
from suite.types import Evaluation, Job

JudgeMaker = Callable[[tuple[int, ...]], AbstractContextManager[Evaluator]]
"""Makes the evaluator that owns these cores; must be picklable."""


RESTART_S = 60.0


@dataclass(frozen=True)
class Verdict:
    """A judge's answer: an evaluation, or the trouble that kept it from one."""

    evaluation: Evaluation | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Ended:
    """How a trial's process ended: `outcome` as `run_trial` says it, a user's error in three parts, or its death."""

    trial: str
    outcome: str | None = None
    error: tuple[str, str, str] | None = None
    died: str | None = None


class JudgeActor:
    """Owns a set of cores and the one judge on them."""

    def __init__(self, make: JudgeMaker, cores: tuple[int, ...]) -> None:
        self._stack = ExitStack()
        self._judge = self._stack.enter_context(make(cores))

    def ready(self) -> bool:
        return True

    def pid(self) -> int:
        return os.getpid()

    def evaluate(self, job: Job) -> Verdict:
        try:
            return Verdict(self._judge.evaluate(job))
        except (InfraError, UserError) as error:
            return Verdict(trouble=str(error))


class Desk:
    """Queues jobs, first come first served, over the judges that are free.

    Knows the judges by name: a restarted desk could not have its arguments again if they held references of Ray's.
    """

    def __init__(self, judges: list[str]) -> None:
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        self._returning: set[asyncio.Task[None]] = set()
        for name in judges:
            self._free.put_nowait(ray.get_actor(name))

    async def ready(self) -> bool:
        return True

    async def evaluate(self, job: Job) -> Verdict:
        """Wait for a judge, have it judge. A judge that dies over a job is out until it is up again."""
        loop = asyncio.get_running_loop()
        came = loop.time()
        judge = await self._free.get()
        waited = loop.time() - came
        try:
            verdict: Verdict = await judge.evaluate.remote(job)
        except RayError as error:
            task = loop.create_task(self._return(judge))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)
            return Verdict(trouble=f"the judge was lost: {type(error).__name__}")
        self._free.put_nowait(judge)
        if verdict.evaluation is None:
            return verdict
        return Verdict(verdict.evaluation.model_copy(update={"queued_s": verdict.evaluation.queued_s + waited}))

    async def _return(self, judge: Any) -> None:
        while True:
            try:
                await judge.ready.remote()
            except RayError:
                await asyncio.sleep(0.2)
            else:
                self._free.put_nowait(judge)
                return


class DeskEvaluator:
    """The evaluator port of a trial on the cluster."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk

    def evaluate(self, job: Job) -> Evaluation:
        try:
            verdict: Verdict = ray.get(self._desk.evaluate.remote(job))
        except RayError as error:
            self._until_it_is_back()
            raise InfraError(f"the desk was lost: {type(error).__name__}") from error
        if verdict.evaluation is None:
            raise InfraError(verdict.trouble)
        return verdict.evaluation

    def _until_it_is_back(self) -> None:
        """A desk takes seconds to restart: without waiting, three tries in a row would be over before it is up."""
        deadline = time.monotonic() + RESTART_S
        while time.monotonic() < deadline:
            try:
                ray.get(self._desk.ready.remote())
            except RayError:
                time.sleep(0.2)
            else:
                return


class TrialActor:
    """Runs one trial; `stop` may be called while `run` is under way (the actor has two threads)."""

    def __init__(self, desk: Any, keys: dict[str, str]) -> None:
        self._evaluator = DeskEvaluator(desk)
        self._keys = keys
        self._stop = threading.Event()

    def pid(self) -> int:
        return os.getpid()

    def run(self, order: TrialOrder) -> Ended:
        order.folder.mkdir(parents=True, exist_ok=True)
        logging.basicConfig(filename=order.folder / "trial.log", format="%(asctime)s %(levelname)s %(message)s")
        try:
            with open_model(order.spec.model, self._keys) as model:
                return Ended(order.spec.id, outcome=run_trial(order, self._evaluator, model, self._stop))
        except UserError as error:
            return Ended(order.spec.id, error=(error.came, error.expected, error.todo))

    def stop(self) -> None:
        self._stop.set()
