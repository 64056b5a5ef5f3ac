"""A trial in a process of its own, to be killed: `python -m tests.conformance.racer FOLDER METHOD SECONDS`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from methods import planners, resolve
from suite import tuner
from suite.bench import TrialOrder
from suite.model import OpenAIModel
from suite.trial import Outcome, run_trial
from suite.types import Budget, Evaluation, Job, ModelSpec
from tests.methods.course import Hill, order

BUDGET = Budget(evaluations=10)


class Slow(Hill):
    """Takes its time over each verdict, so that there is a middle to be killed in."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._pause, self._seconds = threading.Event(), seconds

    def evaluate(self, job: Job) -> Evaluation:
        self._pause.wait(self._seconds)
        return super().evaluate(job)


def trial(folder: Path, name: str) -> TrialOrder:
    """A trial of the method called `name`, with all its defaults."""
    return order(folder, resolve(name, {}), BUDGET)


def race(folder: Path, name: str, seconds: float = 0.0) -> Outcome:
    """Run the trial with the tuner as its model; each verdict takes `seconds`."""
    with tuner.serve(planners()) as address:
        model = OpenAIModel(ModelSpec(provider="tuner", name="tuner"), address, "none")
        return run_trial(trial(folder, name), Slow(seconds), model, threading.Event())


if __name__ == "__main__":
    race(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
