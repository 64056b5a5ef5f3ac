"""One trial from its starter to the re-measured champion; killed anywhere and run again, it goes on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal

from suite.bench import TrialOrder
from suite.evaluator import Evaluator
from suite.events import Recorder
from suite.workbench import Model

__all__ = ["Outcome", "TrialOrder", "run_trial"]

Outcome = Literal["finished", "suspended"]


def run_trial(
    order: TrialOrder,
    evaluator: Evaluator,
    model: Model | None,
    stop: threading.Event,
    views: Sequence[Recorder] = (),
) -> Outcome:
    """Run the trial, or go on with it, until it is finished or suspended; why stands in the ledger's last line.

    A finished trial returns at once. `stop` suspends it after the evaluations under way. Raises `LedgerError` if the
    ledger is damaged or held by another process. Must be called from a thread that outlives the method's process.
    """
    raise NotImplementedError
