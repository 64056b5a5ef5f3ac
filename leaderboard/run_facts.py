"""Events of a trial -> what its MLflow run shows of them: params, tags, metrics. Pure; knows no MLflow.

This file alone names them. A candidate is a step (its evaluation number), not a run; per-workload numbers are an
artifact, so that a run stays far below the fifty metric names beyond which MLflow's pages slow down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import geometric_mean

from pydantic import JsonValue

from leaderboard import words
from suite.events import ChampionMeasured, Evaluated, TrialFinished, TrialStarted
from suite.score import Estimate, baseline_us, candidate_us, rates, score, speedup
from suite.types import Evaluation, Measurement, Spent, Split, Status, TrialSpec

TRIAL, SEQ, NUMBER, KIND, STATE = "derby.trial", "derby.seq", "derby.evaluation", "derby.kind", "derby.state"
"""Tags by which a run is found again and its reading goes on: which trial, last line taken in, last evaluation."""


@dataclass(frozen=True)
class Facts:
    """What one line of a ledger adds to a run. `wall_s` places its metrics on the run's own clock."""

    metrics: dict[str, float] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    wall_s: float = 0.0


def run_name(spec: TrialSpec) -> str:
    """`tpe · gqa_paged_decode · cpu · s1`."""
    return f"{spec.method.name} · {spec.task} · {spec.lane} · s{spec.seed}"


def identity(spec: TrialSpec) -> dict[str, str]:
    """Tags that find a trial's run."""
    return {
        TRIAL: spec.id,
        KIND: "trial",
        "derby.edition": spec.edition,
        "derby.race": spec.race,
        "derby.method": spec.method.name,
        "derby.task": spec.task,
        "derby.lane": spec.lane,
        "derby.device": spec.device,
        "derby.llm": words.model(spec.model),
    }


def started(event: TrialStarted) -> Facts:
    """The trial's conditions, as params (never rewritten)."""
    spec = event.trial
    budget = spec.budget.model_dump(mode="json", exclude_none=True)
    options = {f"option.{name}": str(value) for name, value in spec.method.options.items()}
    params = {
        "method": spec.method.name,
        "method_target": spec.method.target,
        **options,
        "task": spec.task,
        "task_digest": spec.task_digest,
        "brief_digest": spec.brief_digest,
        "lane": spec.lane,
        "device": spec.device,
        "language": spec.language.value,
        "starter": spec.starter.value,
        "model": spec.model.name if spec.model else "none",
        "effort": (spec.model.effort if spec.model else None) or "none",
        "concurrency": str(spec.concurrency),
        "seed": str(spec.seed),
        **{f"budget.{name}": str(limit) for name, limit in budget.items()},
        "timing_protocol": spec.timing_protocol,
        "heldout_commitment": event.heldout_commitment,
    }
    revision = {"derby.git": event.environment["git"]} if "git" in event.environment else {}
    return Facts(params=params, tags={STATE: "running", **revision})


def evaluated(event: Evaluated, best: float, failed: int) -> Facts:
    """One candidate: its own speedup if it has one, the best and the number of failures with it, the totals so far."""
    points = score(event.evaluation, Split.SEARCH).value
    own = {"speedup/candidate": points} if event.evaluation.status == Status.PASSED else {}
    metrics = {
        **own,
        "speedup/best": best,
        "evals/failed": float(failed),
        "time/judging_s": sum(event.evaluation.stages_s.values()),
        "time/queued_s": event.evaluation.queued_s,
        **totals(event.spent),
    }
    return Facts(metrics=finite(metrics), tags={NUMBER: str(event.number)}, wall_s=event.spent.wall_s)


def totals(spent: Spent) -> dict[str, float]:
    """What a trial has used so far; an unknown price is left out, not called zero."""
    usage = spent.usage
    cost = {} if spent.usd is None else {"cost/usd_total": spent.usd}
    return {
        **cost,
        "evals/total": float(spent.evaluations),
        "evals/free": float(spent.free),
        "evals/refunds": float(spent.refunds),
        "model/calls": float(spent.calls),
        "tokens/total": float(usage.total),
        "tokens/input": float(usage.input),
        "tokens/cached": float(usage.cached),
        "tokens/output": float(usage.output),
        "tokens/reasoning": float(usage.reasoning),
        "tokens/unconfirmed": float(spent.unconfirmed_tokens),
        "time/wall_s": spent.wall_s,
        "time/waited_s": spent.waited_s,
    }


def champion(event: ChampionMeasured, wall_s: float) -> Facts:
    """The re-measurement that is ranked."""
    evaluation = event.evaluation
    metrics = {
        **_sides("heldout", score(evaluation, Split.HELDOUT)),
        **_sides("search", score(evaluation, Split.SEARCH)),
        **_rates(evaluation),
    }
    tags = {"derby.champion": event.candidate, "derby.status": evaluation.status.value}
    return Facts(metrics=finite(metrics), tags={**tags, "derby.busy": str(evaluation.busy).lower()}, wall_s=wall_s)


def finished(event: TrialFinished) -> Facts:
    tags = {STATE: "finished", "derby.reason": event.reason}
    return Facts(metrics=finite(totals(event.spent)), tags=tags, wall_s=event.spent.wall_s)


def _sides(name: str, estimate: Estimate) -> dict[str, float]:
    sides = {"": estimate.value, "_low": estimate.low, "_high": estimate.high}
    return {f"speedup/{name}{suffix}": value for suffix, value in sides.items() if value is not None}


def _rates(evaluation: Evaluation) -> dict[str, float]:
    """Geometric means over the held-out workloads, where every one of them has a rate."""
    found = [rates(item) for item in evaluation.measurements if item.workload.split == Split.HELDOUT]
    names = ("rate/gflops", "rate/gbytes_per_s")
    columns = dict(zip(names, zip(*found, strict=True), strict=True)) if found else {}
    return {name: geometric_mean(values) for name, values in columns.items() if all(values)}


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Without NaN and infinities, which MLflow would store as 1.8e308 and draw as an absurd speedup."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def workloads(evaluation: Evaluation) -> list[dict[str, JsonValue]]:
    """The per-workload table, microseconds, for an artifact."""
    return [_workload(item) for item in evaluation.measurements]


def _workload(item: Measurement) -> dict[str, JsonValue]:
    estimate, (gflops, gbytes) = speedup(item), rates(item)
    return {
        "uuid": item.workload.uuid,
        "split": item.workload.split.value,
        "axes": dict(item.workload.axes),
        "status": item.status.value,
        "detail": item.detail,
        "speedup": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "candidate_us": candidate_us(item),
        "baseline_us": baseline_us(item),
        "gflops": gflops,
        "gbytes_per_s": gbytes,
        "max_absolute_error": item.correctness.max_absolute_error if item.correctness else None,
        "max_relative_error": item.correctness.max_relative_error if item.correctness else None,
    }
