"""The demo's champions against starter and baseline, on search and held-out. `python -m tests.benchmarks.champions`.

Reads a finished demo race (`make demo`, or `--runs DIR`) and measures the starter the way champions are measured, on
the same held-out workloads.
"""

from __future__ import annotations

import sys

from pydantic import JsonValue

from leaderboard.reading import load
from leaderboard.records import TrialRecord
from suite.events import ChampionMeasured, Event, TrialStarted
from suite.judge.judge import Judge
from suite.ledger import read
from suite.score import Estimate, candidate_us, score, speedup
from suite.types import Evaluation, Job, Split, Tier
from tests.benchmarks.results import keep, runs_of_the_demo, task

Row = tuple[str, Evaluation]


def shown(estimate: Estimate) -> str:
    """A speedup with its interval."""
    bounds = "" if estimate.low is None or estimate.high is None else f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.2f}x{bounds}"


def event(record: TrialRecord, kind: type[Event]) -> Event:
    """The one event of a kind in a trial's ledger."""
    return next(entry.event for entry in read(record.ledger) if isinstance(entry.event, kind))


def starter_row(record: TrialRecord) -> Row:
    """The trial's starter in the champion tier, on the trial's own held-out workloads."""
    started, measured = event(record, TrialStarted), event(record, ChampionMeasured)
    assert isinstance(started, TrialStarted) and isinstance(measured, ChampionMeasured)
    job = Job(task=task(record.spec.task), candidate=started.starter, tier=Tier.CHAMPION, heldout=measured.heldout)
    with Judge() as judge:
        return "starter", judge.evaluate(job)


def table(rows: list[Row]) -> list[str]:
    """Speedups over the baseline, which is 1.00 by definition, as a whole and for each workload."""
    lines = [f"  {'':12} {'search':>24} {'held-out':>24}  busy"]
    for name, evaluation in rows:
        sides = [shown(score(evaluation, split)) for split in (Split.SEARCH, Split.HELDOUT)]
        lines.append(f"  {name:12} {sides[0]:>24} {sides[1]:>24}  {'yes' if evaluation.busy else 'no'}")
    lines.append("  for each workload: speedup, median milliseconds of a call")
    for name, evaluation in rows:
        for item in evaluation.measurements:
            if item.launches:
                micros = candidate_us(item) or 0.0
                where = f"{item.workload.split} {item.workload.uuid}"
                lines.append(f"  {name:12} {where:40} {shown(speedup(item)):>24} {micros / 1e3:9.2f}")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Print and keep the table."""
    runs, missing = runs_of_the_demo("champions", __doc__, arguments)
    records = [record for record in load(runs) if record.spec.race == "demo" and record.champion is not None]
    if not records:
        sys.exit(missing)
    lines: list[str] = []
    raw: dict[str, JsonValue] = {}
    for name in sorted({record.spec.task for record in records}):
        raced = [record for record in records if record.spec.task == name]
        rows: list[Row] = [starter_row(raced[0])]
        rows += [(one.spec.method.name, one.champion.evaluation) for one in raced if one.champion is not None]
        lines += [f"{name}:", *table(rows)]
        raw[name] = {method: evaluation.model_dump(mode="json") for method, evaluation in rows}
    keep("champions", lines, raw)


if __name__ == "__main__":
    main()
