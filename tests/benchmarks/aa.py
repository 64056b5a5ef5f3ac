"""A/A: the baseline judged as if it were a candidate. `python -m tests.benchmarks.aa --champion 40 --search 40`."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from pydantic import JsonValue

from suite.judge.judge import Judge
from suite.score import score, speedup
from suite.task import baseline
from suite.types import Evaluation, Job, Status, Task, Tier
from tests.benchmarks.results import keep, task


def judged(judge: Judge, course: Task, tier: Tier, count: int) -> list[Evaluation]:
    """The baseline as candidate, `count` times."""
    evaluations = []
    for number in range(count):
        begin = time.perf_counter()
        evaluation = judge.evaluate(Job(task=course, candidate=baseline(course), tier=tier))
        estimate = score(evaluation)
        width = estimate.half_width
        print(
            f"{tier} {number + 1}/{count}: {evaluation.status} {estimate.value:.4f}"
            f" ± {100 * width if width is not None else float('nan'):.2f} %"
            f"{' busy' if evaluation.busy else ''}, {time.perf_counter() - begin:.1f} s",
            file=sys.stderr,
        )
        evaluations.append(evaluation)
    return evaluations


def summary(tier: Tier, evaluations: list[Evaluation]) -> tuple[list[str], dict[str, JsonValue]]:
    """How often the interval holds 1.00, and how far the scores are apart."""
    passed = [each for each in evaluations if each.status == Status.PASSED]
    estimates = [score(each) for each in passed]
    bounded = [one for one in estimates if one.low is not None and one.high is not None]
    holding = sum(1 for one in bounded if (one.low or 0) <= 1.0 <= (one.high or 0))
    values = np.array([one.value for one in estimates])
    widths = np.array([one.half_width for one in bounded if one.half_width is not None])
    busy = sum(each.busy for each in passed)
    lines = [
        f"{tier}: {len(passed)} of {len(evaluations)} passed, {busy} of them marked busy",
        f"  the 95 % interval holds 1.00 in {holding} of {len(bounded)} ({100 * holding / max(len(bounded), 1):.0f} %)",
        f"  scores: median {np.median(values):.4f}, from {values.min():.4f} to {values.max():.4f},"
        f" sd {100 * np.log(values).std(ddof=1):.2f} %; median half-width {100 * np.median(widths):.2f} %",
    ]
    numbers: dict[str, JsonValue] = {
        "scores": [one.model_dump(mode="json") for one in estimates],
        "workloads": [[speedup(one).value for one in each.measurements if one.launches] for each in passed],
        "foreign_cpu": [
            [launch.foreign_cpu for one in each.measurements for launch in one.launches] for each in passed
        ],
        "failures": [each.failure.model_dump(mode="json") for each in evaluations if each.failure],
    }
    return lines, numbers


def main(arguments: list[str] | None = None) -> None:
    """Measure the tiers asked for and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.aa", description=__doc__)
    parser.add_argument("--champion", type=int, default=40, metavar="N", help="evaluations in the champion tier")
    parser.add_argument("--search", type=int, default=40, metavar="N", help="evaluations in the search tier")
    options = parser.parse_args(arguments)
    lines: list[str] = []
    numbers: dict[str, JsonValue] = {}
    course = task()
    with Judge() as judge:
        judge.warm(course)
        for tier, count in ((Tier.SEARCH, options.search), (Tier.CHAMPION, options.champion)):
            if count >= 2:
                said, raw = summary(tier, judged(judge, course, tier, count))
                lines += said
                numbers[tier.value] = raw
    keep("aa", lines, numbers)


if __name__ == "__main__":
    main()
