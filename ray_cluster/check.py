"""`derby check`: judges one kernel here and says whether its speedup is real. Imports neither Ray nor MLflow."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from ray_cluster.console import Exit, data_console, print_json, progress_console
from ray_cluster.find import find_task
from ray_cluster.judging import LocalJudge, need_compiler
from suite.errors import InfraError
from suite.judge.plan import Timing
from suite.score import Estimate, baseline_us, candidate_us, rates, score, speedup
from suite.task import draw_heldout, from_files
from suite.types import Evaluation, Job, Measurement, Split, Status, Tier

ATTEMPTS = 3


def check(name: str, files: Sequence[Path], tier: Tier, lane: str, timing: Timing) -> Evaluation:
    """Judge the candidate made of `files` (the first holds `run`); the champion tier draws held-out workloads."""
    need_compiler()
    task = find_task(name, lane)
    candidate = from_files(task, files)
    heldout = draw_heldout(task, secrets.token_bytes(32)) if tier is Tier.CHAMPION else ()
    job = Job(task=task, candidate=candidate, tier=tier, heldout=heldout)
    cores = tuple(sorted(os.sched_getaffinity(0)))[:2]
    with LocalJudge(timing)(cores) as judge:
        for attempt in range(ATTEMPTS):
            try:
                return judge.evaluate(job)
            except InfraError:
                if attempt == ATTEMPTS - 1:
                    raise
    raise AssertionError("the loop returns or raises")


def report(evaluation: Evaluation, as_json: bool) -> Exit:
    """Print the verdict: data on stdout, words on stderr for a table's readers."""
    if as_json:
        print_json("check", **as_document(evaluation))
    else:
        console = data_console()
        if any(item.launches for item in evaluation.measurements):
            console.print(measurements_table(evaluation))
        if evaluation.log and evaluation.status is not Status.PASSED:
            progress_console().print(Text(evaluation.log.rstrip()))
        for sentence in verdict(evaluation):
            console.print(Text(sentence), soft_wrap=True)
    return Exit.OK if evaluation.status is Status.PASSED else Exit.FAILED


def measurements_table(evaluation: Evaluation) -> Table:
    """One row for each timed workload."""
    table = Table(header_style="bold")
    table.add_column("workload", overflow="fold")
    for name in ("split", "speedup", "95 % interval", "candidate", "baseline", "GFLOPS", "GB/s", "max error"):
        table.add_column(name, justify="right", no_wrap=True)
    for item in evaluation.measurements:
        if item.launches:
            table.add_row(*_row(item))
    return table


def _row(item: Measurement) -> tuple[str, ...]:
    value = speedup(item)
    wrong = item.correctness.max_relative_error if item.correctness else None
    return (
        shape(item),
        str(item.workload.split),
        f"{value.value:.3f}×",
        interval(value),
        *(
            f"{micros / 1e3:.3f} ms" if micros is not None else "–"
            for micros in (candidate_us(item), baseline_us(item))
        ),
        *(f"{rate:.1f}" if rate is not None else "–" for rate in rates(item)),
        f"{wrong:.1e}" if wrong is not None else "–",
    )


def shape(item: Measurement) -> str:
    return ", ".join(f"{name}={size}" for name, size in item.workload.axes.items())


def interval(value: Estimate) -> str:
    return f"{value.low:.3f} – {value.high:.3f}" if value.low is not None and value.high is not None else "–"


def verdict(evaluation: Evaluation) -> list[str]:
    """The verdict in words, most important sentence first."""
    if evaluation.status is not Status.PASSED:
        return [_failure(evaluation)]
    search = score(evaluation, Split.SEARCH)
    sentences = [f"PASSED: {_compared(search)} (geometric mean over {_count(evaluation, Split.SEARCH)} workloads)."]
    if evaluation.tier is Tier.CHAMPION:
        heldout = score(evaluation, Split.HELDOUT)
        sentences.append(f"On {_count(evaluation, Split.HELDOUT)} held-out workloads: {_compared(heldout)}.")
    else:
        sentences.append("One short launch: for a number to publish, run it again with --champion.")
    if evaluation.busy:
        sentences.append("The machine was busy with other work while timing: the numbers may be off; run it again.")
    return sentences


def _failure(evaluation: Evaluation) -> str:
    failure = evaluation.failure
    if failure is None:
        return f"FAILED: {evaluation.status}."
    where = f" on workload {failure.workload}" if failure.workload else ""
    return f"FAILED at {failure.stage}{where}: {evaluation.status}. {failure.detail}"


def _compared(value: Estimate) -> str:
    sure = f", 95 % interval {interval(value)}" if value.low is not None else ""
    words = f"{value.value:.3f}× the baseline's speed{sure}"
    if value.low is None or value.high is None:
        return words
    if value.low > 1:
        return f"faster than the baseline, {words}"
    return f"slower than the baseline, {words}" if value.high < 1 else f"no different from the baseline, {words}"


def _count(evaluation: Evaluation, split: Split) -> int:
    return sum(item.workload.split is split for item in evaluation.measurements)


def as_document(evaluation: Evaluation) -> dict[str, JsonValue]:
    """What `--json` prints: the verdict's numbers; the raw samples are left out."""
    workloads: list[JsonValue] = [_workload(item) for item in evaluation.measurements if item.launches]
    splits = {split: score(evaluation, split) for split in (Split.SEARCH, Split.HELDOUT) if _count(evaluation, split)}
    return {
        "task": evaluation.definition,
        "task_digest": evaluation.task_digest,
        "candidate": evaluation.candidate,
        "lane": evaluation.lane,
        "device": evaluation.device,
        "tier": evaluation.tier.value,
        "timing_protocol": evaluation.timing_protocol,
        "status": evaluation.status.value,
        "failure": evaluation.failure.model_dump(mode="json") if evaluation.failure else None,
        "score": {split.value: value.model_dump(mode="json") for split, value in splits.items()},
        "workloads": workloads,
        "busy": evaluation.busy,
        "log": evaluation.log,
        "sandbox": dict(evaluation.sandbox),
        "stages_s": dict(evaluation.stages_s),
        "verdict": " ".join(verdict(evaluation)),
    }


def _workload(item: Measurement) -> dict[str, JsonValue]:
    gflops, gbytes = rates(item)
    return {
        "uuid": item.workload.uuid,
        "split": item.workload.split.value,
        "axes": dict(item.workload.axes),
        "status": item.status.value,
        "speedup": speedup(item).model_dump(mode="json"),
        "candidate_us": candidate_us(item),
        "baseline_us": baseline_us(item),
        "gflops": gflops,
        "gbytes_per_s": gbytes,
        "correctness": item.correctness.model_dump(mode="json") if item.correctness else None,
    }
