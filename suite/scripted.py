"""Stand-ins that ship: made-up but deterministic verdicts and canned replies, where there is no judge and no key.

A scripted verdict says so: its device is "scripted", and no board ranks it beside a measured one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence

from suite.errors import InfraError
from suite.events import Message
from suite.types import (
    TIMING_PROTOCOL,
    Candidate,
    Evaluation,
    Failure,
    Job,
    Launch,
    Measurement,
    Split,
    Status,
    Tier,
    Usage,
    Workload,
    digest_of,
)
from suite.workbench import EditFormat, Reply

DEVICE = "scripted"
BASELINE_US = 1000.0
BYTES_PER_TOKEN = 4

_WISH = re.compile(r"scripted:\s*(\S+)")


class ScriptedEvaluator:
    """Makes verdicts up from the candidate's text, the same ones every time; touches no process and no clock.

    A line with "scripted: 1.5" gives that speedup, "scripted: COMPILE_ERROR" (any `Status`) that ending; else the
    speedup follows from the text's hash, between 0.5 and 2. In the champion tier it is 2 % lower. Thread-safe.
    """

    def __init__(self, seconds: float = 0.0, lost: frozenset[int] = frozenset()) -> None:
        """`seconds` each verdict takes; `lost` are the numbers (from 1) of calls that end in an `InfraError`."""
        self._seconds, self._lost = seconds, lost
        self._calls = 0
        self._lock = threading.Lock()

    def evaluate(self, job: Job) -> Evaluation:
        with self._lock:
            self._calls += 1
            call = self._calls
        time.sleep(self._seconds)
        if call in self._lost:
            raise InfraError(f"scripted failure of call {call}")
        status, speed = _wish(job.candidate)
        if job.tier == Tier.CHAMPION:
            speed *= 0.98
        shapes = (*job.task.split(Split.SEARCH), *job.heldout)
        return Evaluation(
            candidate=job.candidate.id,
            definition=job.task.name,
            task_digest=job.task.digest,
            tier=job.tier,
            lane=job.task.lane,
            device=DEVICE,
            timing_protocol=TIMING_PROTOCOL,
            status=status,
            failure=None if status == Status.PASSED else _failure(status),
            measurements=tuple(_measurement(shape, speed, job.tier) for shape in shapes if status == Status.PASSED),
            log=f"scripted {status}" if status == Status.COMPILE_ERROR else "",
        )


def _wish(candidate: Candidate) -> tuple[Status, float]:
    text = "\n".join(source.content for source in candidate.sources)
    found = _WISH.search(text)
    if found is None:
        return Status.PASSED, 0.5 + 1.5 * int(candidate.id[:8], 16) / 0xFFFFFFFF
    if found[1] in Status.__members__:
        return Status[found[1]], 1.0
    return Status.PASSED, float(found[1])


def _failure(status: Status) -> Failure:
    return Failure(stage="build" if status == Status.COMPILE_ERROR else "check", detail=f"scripted {status}")


def _measurement(workload: Workload, speed: float, tier: Tier) -> Measurement:
    quads = 5
    launch = Launch(
        candidate_us=(BASELINE_US / speed,) * (2 * quads),
        baseline_us=(BASELINE_US,) * (2 * quads),
        overhead_us=0.0,
        foreign_cpu=0.0,
        seconds=0.0,
    )
    launches = 3 if tier == Tier.CHAMPION else 1
    return Measurement(workload=workload, status=Status.PASSED, launches=(launch,) * launches)


class ScriptedModel:
    """Answers with one of a few canned texts; which one follows from prompt and seed alone. Thread-safe."""

    def __init__(self, replies: Sequence[str], seconds: float = 0.0) -> None:
        """`seconds` each answer takes."""
        self._replies, self._seconds = tuple(replies), seconds

    def chat(self, messages: Sequence[Message], *, max_output_tokens: int, seed: int, edit_format: EditFormat) -> Reply:
        time.sleep(self._seconds)
        dice = int(digest_of([seed, *(message.content for message in messages)])[:8], 16)
        text = self._replies[dice % len(self._replies)]
        cut = text[: max_output_tokens * BYTES_PER_TOKEN]
        usage = Usage(
            input=sum(len(message.content) for message in messages) // BYTES_PER_TOKEN,
            output=len(cut) // BYTES_PER_TOKEN,
        )
        return Reply(text=cut, usage=usage, finish_reason="stop" if cut == text else "length")
