"""What is noted down while a candidate is judged, and the verdict made of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from suite.judge.machine import cpu_model
from suite.judge.plan import JudgeSettings
from suite.judge.sides import Rejected
from suite.types import Evaluation, Failure, Job, Measurement, Status, Workload

LOG_LIMIT = 64 << 10
Stage = Literal["screen", "build", "start", "check", "timing"]


class Hearing:
    """The record of one evaluation in the making."""

    def __init__(self, job: Job, settings: JudgeSettings, queued_s: float) -> None:
        self.job = job
        self.sandbox: dict[str, str] = {}
        self._queued_s, self._settings = queued_s, settings
        self._stages_s: dict[str, float] = {}
        self._stage: Stage = "screen"
        self._workload: Workload | None = None
        self._log = ""
        self._measurements: tuple[Measurement, ...] = ()
        self._status = Status.PASSED
        self._failure: Failure | None = None

    @contextmanager
    def stage(self, name: Stage, workload: Workload | None = None) -> Iterator[None]:
        """Time spent inside counts for the stage; a rejection inside happened there."""
        self._stage, self._workload = name, workload
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._stages_s[name] = self._stages_s.get(name, 0.0) + time.perf_counter() - begin

    def print(self, text: str) -> None:
        """Add to the log, which keeps its first 64 KiB; what is there already is not repeated (launches are alike)."""
        if text.strip() and text not in self._log:
            kept = (self._log + text).encode(errors="replace")[:LOG_LIMIT]
            self._log = kept.decode(errors="ignore")

    def add(self, measurements: tuple[Measurement, ...]) -> None:
        self._measurements += measurements

    def fail(self, status: Status, failure: Failure) -> None:
        self._status, self._failure = status, failure

    def reject(self, verdict: Rejected) -> None:
        """The candidate failed where the hearing stands now."""
        where = "check" if self._stage == "check" else self._workload and self._workload.uuid
        self.fail(verdict.status, Failure(stage=self._stage, detail=verdict.detail, workload=where))
        if self._workload is not None:
            self.add((Measurement(workload=self._workload, status=verdict.status, detail=verdict.detail),))

    def evaluation(self) -> Evaluation:
        """The verdict."""
        job = self.job
        launches = [launch for measurement in self._measurements for launch in measurement.launches]
        seconds = sum(launch.seconds for launch in launches)
        foreign = sum(launch.foreign_cpu * launch.seconds for launch in launches)
        return Evaluation(
            candidate=job.candidate.id,
            definition=job.task.name,
            task_digest=job.task.digest,
            tier=job.tier,
            lane=job.task.lane,
            device=cpu_model(),
            timing_protocol=self._settings.protocol,
            status=self._status,
            failure=self._failure,
            measurements=self._measurements,
            log=self._log,
            sandbox=self.sandbox,
            stages_s=self._stages_s,
            queued_s=self._queued_s,
            busy=seconds > 0 and foreign / seconds > self._settings.busy_limit,
        )
