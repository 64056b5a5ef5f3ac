"""The evaluator port: whoever can turn a job into a verdict (a judge here, or a pool of judges elsewhere)."""

from __future__ import annotations

from typing import Protocol

from suite.types import Evaluation, Job


class Evaluator(Protocol):
    def evaluate(self, job: Job) -> Evaluation:
        """Judge one candidate: all its failures are verdicts. Raises `InfraError` for a failure of ours."""
