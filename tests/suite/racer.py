"""Runs one scripted trial as a process of its own, to be killed: racer.py FOLDER METHOD SECONDS."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from suite.scripted import ScriptedEvaluator, ScriptedModel
from suite.trial import Outcome, run_trial
from suite.types import Budget
from tests.suite.stage import order

REPLIES = tuple(f"// reply {index}" for index in range(50))


def race(folder: Path, method: str, seconds: float = 0.0) -> Outcome:
    """`seconds` each verdict and each reply takes."""
    trial = order(folder, method, Budget(evaluations=6, tokens=1_000_000))
    return run_trial(trial, ScriptedEvaluator(seconds), ScriptedModel(REPLIES, seconds), threading.Event())


if __name__ == "__main__":
    race(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
