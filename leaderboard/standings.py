"""Trial records -> ranked tables: the one place where methods are compared. Pure; used by CLI, app and static site.

A table holds what may be compared: trials that differ in method and seed alone. Each method is a row:

* `heldout` is ranked: the champions' re-measured speedup on held-out workloads; `search` is the same re-measurement on
  the workloads methods saw, `search_time` what the trial itself believed. Zeros (champions that failed) stay in.
* From three seeds on the interval is Student's t on the log-speedup over seeds; with fewer it is the champion's own,
  over launches (two seeds: the hull of both), and says nothing about luck between seeds.
* Of several finished trials with the same method, options and seed the earliest counts: racing again until luck strikes
  must not pay. The others are counted as `repeats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, geometric_mean
from typing import Literal

from leaderboard import words
from leaderboard.ranks import MIN_SEEDS, shared_ranks
from leaderboard.records import Champion, State, TrialRecord
from suite.score import ZERO, Estimate, over_seeds, rates
from suite.types import Budget, Frozen, Language, MethodSpec, ModelSpec, Split, StarterKind, TrialSpec, digest_of

RANKED_SEEDS = 5
"""Fewer seeds are marked preliminary."""


class Partition(Frozen):
    """What all trials of a table have in common. `model` is None for stand-ins and methods that ask none (no LLM)."""

    edition: str
    task: str
    task_digest: str
    brief_digest: str
    lane: str
    device: str
    language: Language
    starter: StarterKind
    model: ModelSpec | None
    budget: Budget
    concurrency: int
    timing_protocol: str

    @classmethod
    def of(cls, spec: TrialSpec) -> Partition:
        shared = {name: getattr(spec, name) for name in cls.model_fields if name != "model"}
        return cls(**shared, model=spec.model if spec.model is not None and spec.model.is_llm else None)

    @property
    def id(self) -> str:
        """Short and stable: names the table in addresses and exports."""
        return digest_of(self.model_dump(mode="json"))[:8]

    @property
    def title(self) -> str:
        """The conditions a reader chooses between, in words."""
        parts = (self.language.value, f"{self.starter} starter", words.model(self.model), words.budget(self.budget))
        return " · ".join(
            (f"{self.lane} ({self.device})", *parts, f"{self.concurrency} at a time", f"timing {self.timing_protocol}")
        )


@dataclass(frozen=True)
class Row:
    """A line of a table. Means are per trial; None is "not measured" or, for `usd`, "price unknown"."""

    kind: Literal["method", "starter", "baseline"]
    name: str
    options: str = ""
    rank: int | None = None
    heldout: Estimate | None = None
    search: Estimate | None = None
    search_time: float | None = None
    seeds: int = 0
    failed: int = 0
    unfinished: int = 0
    repeats: int = 0
    no_llm: bool = False
    evaluations: float | None = None
    tokens: float | None = None
    usd: float | None = None
    wall_s: float | None = None
    gflops: float | None = None
    gbytes_per_s: float | None = None
    verified: bool = True
    busy: bool = False
    measured: str | None = None
    trials: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """Those of the trials that the numbers are made of."""

    @property
    def preliminary(self) -> bool:
        return self.kind == "method" and self.seeds < RANKED_SEEDS

    @property
    def marks(self) -> tuple[str, ...]:
        """What a reader must know before believing the number, in words."""
        marks = (
            ("preliminary", self.preliminary),
            ("no LLM", self.no_llm),
            (f"{self.failed} of {self.seeds} champions failed", self.failed > 0),
            (f"{self.unfinished} unfinished", self.unfinished > 0),
            (f"{self.repeats} repeated", self.repeats > 0),
            ("machine busy", self.busy),
            ("claimed", not self.verified),
        )
        return tuple(text for text, holds in marks if holds)


@dataclass(frozen=True)
class Table:
    """One comparison: method rows from best to worst, then the starter (evaluation 0) and the baseline (1.00)."""

    partition: Partition
    rows: tuple[Row, ...]

    def label(self, row: Row) -> str:
        """What to call a row: the method's name, with its options where another row has the same name."""
        shared = sum(other.name == row.name for other in self.rows) > 1
        return f"{row.name} ({row.options})" if shared and row.options else row.name


def standings(trials: Iterable[TrialRecord]) -> tuple[Table, ...]:
    """A table for every partition, in order of edition, task and conditions."""

    def key(trial: TrialRecord) -> str:
        partition = Partition.of(trial.spec)
        return "\n".join((partition.edition, partition.task, partition.title, partition.id))

    ordered = sorted(trials, key=lambda trial: (key(trial), trial.started))
    return tuple(_table(tuple(group)) for _, group in groupby(ordered, key))


def _table(trials: tuple[TrialRecord, ...]) -> Table:
    methods = list(dict.fromkeys(_method(trial) for trial in trials))
    grouped = [[trial for trial in trials if _method(trial) == method] for method in methods]
    counted = [_counted(group) for group in grouped]
    ranks = shared_ranks([[_heldout(trial).value for trial in group] for group in counted])
    rows = [_row(*row) for row in zip(grouped, counted, ranks, strict=True)]
    rows.sort(key=lambda row: (row.heldout is None, -(row.heldout.value if row.heldout else 0), row.name, row.options))
    return Table(Partition.of(trials[0].spec), (*rows, _starter(trials), _baseline()))


def _method(trial: TrialRecord) -> tuple[str, str, str]:
    method: MethodSpec = trial.spec.method
    return method.name, method.target, words.options(method)


def _counted(trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The earliest finished trial of every seed."""
    finished = [trial for trial in trials if trial.state == State.FINISHED]
    return list({trial.spec.seed: trial for trial in reversed(finished)}.values())[::-1]


def _heldout(trial: TrialRecord) -> Estimate:
    # A trial that found nothing that passes has nothing to re-measure: a result, not a gap.
    return trial.champion.heldout if trial.champion else ZERO


def _search(trial: TrialRecord) -> Estimate:
    return trial.champion.search if trial.champion else ZERO


def over_trials(estimates: Sequence[Estimate]) -> Estimate | None:
    """A row's speedup from its trials' (one per seed); None without any."""
    if not estimates:
        return None
    total = over_seeds([estimate.value for estimate in estimates])
    lows = [estimate.low for estimate in estimates if estimate.low is not None]
    highs = [estimate.high for estimate in estimates if estimate.high is not None]
    if total.value == 0 or len(estimates) >= MIN_SEEDS or len(lows) < len(estimates) or len(highs) < len(estimates):
        return total
    return total.model_copy(update={"low": min(lows), "high": max(highs), "over": estimates[0].over})


def _row(group: Sequence[TrialRecord], counted: Sequence[TrialRecord], rank: int | None) -> Row:
    spec = group[0].spec
    champions = [trial.champion for trial in counted if trial.champion]
    shown = counted or group  # a row without a finished trial tells how far its trials are
    prices = [trial.spent.usd for trial in shown]
    finished = sum(trial.state == State.FINISHED for trial in group)
    return Row(
        kind="method",
        name=spec.method.name,
        options=words.options(spec.method),
        rank=rank,
        heldout=over_trials([_heldout(trial) for trial in counted]),
        search=over_trials([_search(trial) for trial in counted]),
        search_time=_mean_log([trial.best.score.value if trial.best else 0.0 for trial in shown]),
        seeds=len(counted),
        failed=sum(_heldout(trial).value <= 0 for trial in counted),
        unfinished=len(group) - finished,
        repeats=finished - len(counted),
        no_llm=Partition.of(spec).model is None,
        evaluations=_mean([trial.spent.evaluations for trial in shown]),
        tokens=_mean([trial.spent.usage.total + trial.spent.unconfirmed_tokens for trial in shown]),
        usd=_mean([price for price in prices if price is not None]) if None not in prices else None,
        wall_s=_mean([trial.spent.wall_s for trial in shown]),
        gflops=_rate(champions, 0),
        gbytes_per_s=_rate(champions, 1),
        verified=all(trial.verified for trial in shown),
        busy=any(trial.busy for trial in shown),
        measured=max((champion.time for champion in champions), default=None),
        trials=tuple(trial.id for trial in group),
        shown=tuple(trial.id for trial in shown),
    )


def _starter(trials: Sequence[TrialRecord]) -> Row:
    judged = [trial.starter for trial in trials if trial.starter]
    return Row(
        kind="starter",
        name="starter (evaluation 0)",
        search_time=_mean_log([attempt.score.value for attempt in judged]),
        seeds=len(judged),
        busy=any(attempt.busy for attempt in judged),
        measured=max((attempt.time for attempt in judged), default=None),
    )


def _baseline() -> Row:
    one = Estimate(value=1.0)
    return Row(kind="baseline", name="baseline", heldout=one, search=one, search_time=1.0)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _mean_log(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return geometric_mean(values) if min(values) > 0 else 0.0


def _rate(champions: Sequence[Champion], which: Literal[0, 1]) -> float | None:
    """Geometric mean over the champions' held-out workloads (GFLOPS or GB/s); None if one of them has none."""
    found = [
        rates(measurement)[which]
        for champion in champions
        for measurement in champion.evaluation.measurements
        if measurement.workload.split == Split.HELDOUT
    ]
    known = [rate for rate in found if rate]
    return geometric_mean(known) if known and len(known) == len(found) else None


def as_dicts(tables: Iterable[Table]) -> list[dict[str, str | float | int | bool | None]]:
    """Every row of every table as flat values, full precision, units in the names: for CSV, JSON and other programs."""
    return [_flat(table.partition, row) for table in tables for row in table.rows]


def _flat(partition: Partition, row: Row) -> dict[str, str | float | int | bool | None]:
    return {
        "table": partition.id,
        "edition": partition.edition,
        "task": partition.task,
        "task_digest": partition.task_digest,
        "lane": partition.lane,
        "device": partition.device,
        "language": partition.language.value,
        "starter": partition.starter.value,
        "model": words.model(partition.model),
        "budget": words.budget(partition.budget),
        "concurrency": partition.concurrency,
        "timing_protocol": partition.timing_protocol,
        "kind": row.kind,
        "rank": row.rank,
        "name": row.name,
        "options": row.options,
        **_sides("heldout", row.heldout),
        **_sides("search", row.search),
        "search_time_speedup": row.search_time,
        "seeds": row.seeds,
        "champions_failed": row.failed,
        "preliminary": row.preliminary,
        "no_llm": row.no_llm,
        "evaluations": row.evaluations,
        "tokens": row.tokens,
        "usd": row.usd,
        "wall_s": row.wall_s,
        "gflops": row.gflops,
        "gbytes_per_s": row.gbytes_per_s,
        "verified": row.verified,
        "machine_busy": row.busy,
        "measured": row.measured,
        "trials": " ".join(row.trials),
    }


def _sides(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    if estimate is None:
        return {f"{name}_speedup": None, f"{name}_low": None, f"{name}_high": None}
    return {f"{name}_speedup": estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
