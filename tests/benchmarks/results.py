"""Keeps what a benchmark printed and the numbers behind it."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from suite.judge.machine import cpu_model
from suite.task import load
from suite.types import Task

FOLDER = Path(__file__).parent / "results"
TASKS = Path(__file__).parents[2] / "tasks"
DECODE = "gqa_paged_decode_h32_kv4_d128_ps1"


def task(name: str = DECODE) -> Task:
    """A task of the suite on the cpu lane."""
    return load(TASKS / name)


def runs_of_the_demo(benchmark: str, words: str | None, arguments: list[str] | None) -> tuple[Path, str]:
    """The folder that the command line of `benchmark` names, and what to say where no finished demo race lies in it."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.benchmarks.{benchmark}", description=words)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of races; its race `demo` is read")
    runs: Path = parser.parse_args(arguments).runs
    return runs, f"no finished demo race under {runs}\n  expected: its ledgers\n  do: make demo"


def keep(name: str, lines: list[str], numbers: dict[str, JsonValue]) -> None:
    """Write results/<name>.txt and .json, and print the lines."""
    FOLDER.mkdir(exist_ok=True)
    text = "\n".join([f"{name} on {cpu_model()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC", *lines]) + "\n"
    (FOLDER / f"{name}.txt").write_text(text)
    (FOLDER / f"{name}.json").write_text(json.dumps({"device": cpu_model(), **numbers}, indent=1) + "\n")
    print(text, end="")
