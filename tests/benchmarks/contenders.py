"""What each method made of the same budget: evaluations, calls, tokens. `python -m tests.benchmarks.contenders`.

Reads a finished demo race (`make demo`, or `--runs DIR`) from its ledgers and measures nothing itself.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from suite.events import Evaluated, ModelCalled, TrialFinished, TrialStarted
from suite.ledger import read
from suite.types import Spent, Status
from tests.benchmarks.results import keep, runs_of_the_demo


@dataclass(frozen=True)
class Row:
    """One trial: what it may spend and spent, what its calls led to. `barren`: calls without a new verdict after."""

    method: str
    task: str
    allowed: int | None
    spent: Spent
    barren: int
    failed: int
    ended: str


def row(ledger: Path) -> Row | None:
    """The trial of a ledger, None unless it is finished."""
    events = [entry.event for entry in read(ledger)]
    start, end = events[0], events[-1]
    if not isinstance(start, TrialStarted) or not isinstance(end, TrialFinished):
        return None
    verdicts = [event for event in events if isinstance(event, Evaluated) and event.number > 0]
    return Row(
        method=start.trial.method.name,
        task=start.trial.task,
        allowed=start.trial.budget.evaluations,
        spent=end.spent,
        barren=_barren(
            [isinstance(event, ModelCalled) for event in events if isinstance(event, ModelCalled | Evaluated)]
        ),
        failed=sum(event.evaluation.status != Status.PASSED for event in verdicts),
        ended=end.reason,
    )


def _barren(is_call: list[bool]) -> int:
    """Calls followed by another call, or by nothing: planning, answers without a kernel, repeated kernels."""
    return sum(one and (index + 1 == len(is_call) or is_call[index + 1]) for index, one in enumerate(is_call))


def table(rows: list[Row]) -> list[str]:
    """One line for each method and task."""
    head = ("evaluations", "failed", "free", "calls", "barren", "input", "output", "tokens/evaluation")
    lines = [f"  {'method':12} {'task':36}" + "".join(f"{name:>{len(name) + 2}}" for name in head) + "  ended"]
    for one in sorted(rows, key=lambda row: (row.task, row.method)):
        spent = one.spent
        each = spent.usage.total / spent.evaluations if spent.evaluations else 0.0
        values = (
            f"{spent.evaluations}/{one.allowed or '-'}",
            one.failed,
            spent.free,
            spent.calls,
            one.barren,
            spent.usage.input,
            spent.usage.output,
            f"{each:.0f}",
        )
        cells = "".join(f"{value!s:>{len(name) + 2}}" for name, value in zip(head, values, strict=True))
        lines.append(f"  {one.method:12} {one.task:36}{cells}  {one.ended}")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Print and keep the table; exit code 1 if a method was charged more evaluations than it was given."""
    runs, missing = runs_of_the_demo("contenders", __doc__, arguments)
    rows = [found for path in sorted(runs.glob("demo/trials/*/ledger.jsonl")) if (found := row(path)) is not None]
    if not rows:
        sys.exit(missing)
    raw: dict[str, list[JsonValue]] = defaultdict(list)
    for one in rows:
        raw[one.method].append({"task": one.task, "spent": one.spent.model_dump(mode="json"), "barren": one.barren})
    keep("contenders", table(rows), {**raw})
    sys.exit(any(one.allowed is not None and one.spent.evaluations > one.allowed for one in rows))


if __name__ == "__main__":
    main()
