"""OpenEvolve's evaluation file: has a program judged through the door. Loaded by path, once in every process."""

from __future__ import annotations

import os
from pathlib import Path

from openevolve.evaluation_result import EvaluationResult

from methods.openevolve.worker import NOTE, PARENT, bench, candidate, park
from suite.errors import BudgetExhausted, InfraError, Stopped
from suite.workbench import Feedback, WorkloadFeedback

LOG_LIMIT = 8000
"""Characters of the compiler's output that are shown: the first errors."""


def evaluate(program_path: str) -> EvaluationResult:
    """The score as fitness, 0 for a failure, and what may be known of it as artifacts. A refusal parks."""
    text = Path(program_path).read_bytes().decode()
    try:
        verdict = bench().evaluate(candidate(text), os.environ.get(PARENT), os.environ.get(NOTE, ""))
    except (BudgetExhausted, Stopped, InfraError) as refusal:
        park(str(refusal))
    except ValueError as flaw:  # nothing the gateway can read: too long, say
        return EvaluationResult(metrics={"combined_score": 0.0}, artifacts={"status": "REFUSED", "failure": str(flaw)})
    return EvaluationResult(metrics={"combined_score": verdict.score}, artifacts=artifacts(verdict))


def artifacts(verdict: Feedback) -> dict[str, str]:
    """What the next prompt shows beside a program made into a parent."""
    shown = {"status": str(verdict.status)}
    if verdict.failure is not None:
        place = f" (workload {verdict.failure.workload})" if verdict.failure.workload else ""
        shown["failure"] = f"{verdict.failure.stage}: {verdict.failure.detail}{place}"
    if verdict.workloads:
        shown["workloads"] = "\n".join(_line(workload) for workload in verdict.workloads)
    if verdict.log:
        shown["compiler"] = verdict.log[:LOG_LIMIT]
    return shown


def _line(workload: WorkloadFeedback) -> str:
    axes = ", ".join(f"{name} = {value}" for name, value in workload.axes.items())
    times = f"{workload.candidate_us:.1f} us against {workload.baseline_us:.1f} us of the baseline"
    return f"{axes}: speedup {workload.speedup:.3f} ({times})"
