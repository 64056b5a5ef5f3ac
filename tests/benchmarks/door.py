"""What the one door costs: the same calls made directly and through the gateway, scripted verdicts and replies."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from suite.bench import TrialBench
from suite.client import GatewayBench
from suite.events import Message
from suite.gateway import serve
from suite.ledger import Ledger
from suite.scripted import ScriptedEvaluator, ScriptedModel
from suite.types import Budget
from suite.workbench import Workbench
from tests.benchmarks.results import keep
from tests.suite.stage import candidate, order

CALLS = 200


def milliseconds(call: Callable[[int], object]) -> tuple[float, float]:
    """Median wall and CPU milliseconds of a call (both ends of the door are threads of this process)."""
    walls, cpus = [], []
    for index in range(CALLS):
        wall, cpu = time.perf_counter(), time.process_time()
        call(index)
        walls.append((time.perf_counter() - wall) * 1e3)
        cpus.append((time.process_time() - cpu) * 1e3)
    return statistics.median(walls), statistics.median(cpus)


def calls(bench: Workbench, mark: str) -> dict[str, tuple[float, float]]:
    return {
        "evaluate": milliseconds(lambda index: bench.evaluate(candidate(f"// {mark} {index}"))),
        "chat": milliseconds(lambda index: bench.chat([Message(role="user", content=f"{mark} {index}")])),
        "left": milliseconds(lambda index: bench.left()),
    }


def _raw(measured: dict[str, tuple[float, float]]) -> JsonValue:
    return {name: {"wall_ms": wall, "cpu_ms": cpu} for name, (wall, cpu) in measured.items()}


def main() -> None:
    """Print and keep the table."""
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.jsonl") as ledger:
        trial = order(Path(folder), budget=Budget(evaluations=10 * CALLS))
        bench = TrialBench.over(trial, ledger, ScriptedEvaluator(), ScriptedModel(["a"]), threading.Event())
        bench.judge_starter()
        direct = calls(bench, "direct")
        with serve(bench) as (url, token), GatewayBench(url, token) as client:
            through = calls(client, "door")
    lines = [f"{'call':10} {'direct ms':>10} {'door ms':>10} {'overhead ms':>12} {'of it CPU':>10}"]
    for name, (wall, cpu) in through.items():
        before, cpu_before = direct[name]
        lines.append(f"{name:10} {before:10.2f} {wall:10.2f} {wall - before:12.2f} {cpu - cpu_before:10.2f}")
    keep("door", lines, {"direct": _raw(direct), "door": _raw(through)})


if __name__ == "__main__":
    main()
