"""Candidates per minute through one judge, where the time goes, and the start of a child.

`python -m tests.benchmarks.throughput --count 12`: every candidate is a new source, so each is built.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from suite.brief import c_prototype
from suite.judge.build import Builder
from suite.judge.judge import Judge
from suite.judge.plan import JudgeSettings
from suite.judge.sides import Program, shared_memory, spawn
from suite.judge.zygote import Zygote
from suite.task import baseline, starter
from suite.types import Candidate, Evaluation, Job, Language, SourceFile, Task, Tier
from tests.benchmarks.results import keep, task


def unseen(candidate: Candidate, number: int) -> Candidate:
    """The same program as a source nobody has built."""
    stamp = f"// {time.time_ns()} {number}\n"
    sources = [SourceFile(path=one.path, content=stamp + one.content) for one in candidate.sources]
    return candidate.model_copy(update={"sources": tuple(sources)})


def rate(judge: Judge, course: Task, candidate: Candidate, count: int) -> tuple[list[str], dict[str, JsonValue]]:
    """Candidates per minute, and mean seconds in each stage."""
    begin = time.perf_counter()
    job = Job(task=course, candidate=candidate, tier=Tier.SEARCH)
    verdicts: list[Evaluation] = [
        judge.evaluate(job.model_copy(update={"candidate": unseen(candidate, number)})) for number in range(count)
    ]
    seconds = time.perf_counter() - begin
    stages = {name: sum(each.stages_s.get(name, 0.0) for each in verdicts) / count for name in verdicts[0].stages_s}
    stages["rest"] = seconds / count - sum(stages.values())
    where = ", ".join(f"{name} {value:.3f}" for name, value in stages.items())
    passed, busy = sum(each.failure is None for each in verdicts), sum(each.busy for each in verdicts)
    lines = [
        f"  {60 * count / seconds:.1f} candidates a minute ({passed} of {count} passed, {busy} marked busy)",
        f"  seconds each: {where}",
    ]
    return lines, {"per_minute": 60 * count / seconds, "stages_s": dict(stages), "passed": passed, "busy": busy}


def starts(course: Task, cache: Path, count: int) -> tuple[list[str], dict[str, JsonValue]]:
    """Milliseconds from the order to a process that has its memory mapped and its sandbox closed; then to its end."""
    candidate = baseline(course)
    symbol = candidate.spec.entry_point.partition("::")[2]
    abi = f"#include <cstdint>\n{c_prototype(course.definition, symbol)}\n"
    program = Program(candidate, Builder(cache).build(candidate, abi))
    begun, ended = [], []
    settings = JudgeSettings()
    with Zygote(settings.cpus) as zygote, shared_memory(course.definition, course.workloads) as memory:
        for _ in range(count):
            child = spawn(zygote, program, memory.inputs, memory.candidate, settings.memory_bytes)
            begun.append(1e3 * child.start_s)
            begin = time.perf_counter()
            child.kill()
            ended.append(1e3 * (time.perf_counter() - begin))
    lines = [
        f"  {name} of a child: median {np.median(values):.1f} ms, p90 {np.quantile(values, 0.9):.1f} ms"
        for name, values in (("start", begun), ("end", ended))
    ]
    return lines, {"start_ms": list(begun), "end_ms": list(ended)}


def main(arguments: list[str] | None = None) -> None:
    """Measure and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.throughput", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="candidates of each kind")
    count = parser.parse_args(arguments).count
    course = task()
    lines: list[str] = []
    numbers: dict[str, JsonValue] = {}
    with Judge() as judge:
        judge.warm(course)
        for name, candidate in (("starter", starter(course, Language.CPP)), ("baseline", baseline(course))):
            said, numbers[name] = rate(judge, course, candidate, count)
            lines += [f"{name} as candidate, {len(course.workloads)} workloads, one judge:", *said]
    said, numbers["child"] = starts(course, JudgeSettings().cache, 20)
    keep("throughput", [*lines, *said], numbers)


if __name__ == "__main__":
    main()
