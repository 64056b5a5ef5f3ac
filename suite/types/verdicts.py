"""What a judge finds out: raw samples, measurements, evaluations, and the job that asks for one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from suite.types.base import Frozen, Status, Tier
from suite.types.tasks import Candidate, Task, Workload


class DeviceAudit(Frozen):
    """What a GPU lane keeps beside a launch's samples, so that a reader can check the judge's clock (microseconds).

    Seen on an H200 (tests/gpu/results/first_look.txt): events and clock agree within 0.7 us only in the *same* block of
    calls, since recording events lengthens a call by 4-5 us by either measure; so both come from the block with events.
    """

    events_us: tuple[float, ...]
    """The worker's claim: its own events around each call of the block that carries events."""
    clock_under_events_us: tuple[float, ...]
    """The judge's clock over the same calls, net of an empty call with events."""
    mark_us: tuple[float, ...]
    """By how much the judge's mark behind each scored call came later than the score says; honest calls: 1 to 8."""
    refresh_us: tuple[float, ...]
    """The judge's events around refresh and flush; far above `refresh_calibrated_us`, somebody worked in between."""
    refresh_calibrated_us: float
    late_calls: int
    """Calls released before the worker had queued them: a candidate that synchronises."""
    card: dict[str, float]
    """Clocks (MHz), temperature (C), power (W) and throttle bits, read before the launch."""


class Launch(Frozen):
    """Raw samples of one pair of fresh processes on one workload: microseconds, net of an empty call.

    Samples come in A-B-B-A quads: calls 2i and 2i+1 of both lists are quad i. `overhead_us` is what was subtracted and
    `overhead` how it was measured. On a GPU the empty call must hold a kernel: stream words alone never switch the
    device's context and read 6 us where an empty kernel reads 149.
    """

    candidate_us: tuple[float, ...]
    baseline_us: tuple[float, ...]
    overhead_us: float
    overhead: Literal["round_trip", "null_kernel", "event_pair"] = "round_trip"
    foreign_cpu: float
    """Share of one core's time used by other processes of this machine while timing."""
    seconds: float
    audit: DeviceAudit | None = None
    """None on the cpu lane, where the judge's clock is all there is."""


class Correctness(Frozen):
    """The worst over all compared calls; relative errors are against the rms of the slice."""

    max_absolute_error: float
    max_relative_error: float
    compared: int
    """Calls compared with the baseline's output on the same contents."""
    referenced: int
    """Calls compared with the reference."""


class Measurement(Frozen):
    """One workload's outcome. No statistic is stored: score.py derives them from the raw samples."""

    workload: Workload
    status: Status
    detail: str = ""
    correctness: Correctness | None = None
    method: Literal["judge_clock", "judge_clock_with_events", "events"] = "judge_clock"
    """What the samples are; rankings show it, since bare clock and events measure different things on a GPU."""
    launches: tuple[Launch, ...] = ()
    bytes_moved: int | None = None
    flops: int | None = None


class Failure(Frozen):
    """Why a candidate failed: at which stage, in words a search can use."""

    stage: Literal["screen", "build", "start", "check", "timing"]
    detail: str
    workload: str | None = None


class Evaluation(Frozen):
    """The judge's verdict on one candidate. `status` is PASSED only if every measurement is."""

    candidate: str
    definition: str
    task_digest: str
    tier: Tier
    lane: str
    device: str
    timing_protocol: str
    status: Status
    failure: Failure | None = None
    measurements: tuple[Measurement, ...] = ()
    log: str = ""
    """What compiler and candidate printed, capped at 64 KiB; opaque, never parsed."""
    sandbox: dict[str, str] = Field(default_factory=dict)
    """The protection that was in force, layer by layer."""
    stages_s: dict[str, float] = Field(default_factory=dict)
    """Seconds spent in each stage: screen, build, start, check, timing."""
    queued_s: float = 0.0
    """Seconds waited for a judge; recorded, never charged."""
    busy: bool = False
    """Other processes used more of the machine than the limit while timing."""


class Job(Frozen):
    """An order to a judge. `heldout` is empty outside the champion tier."""

    task: Task
    candidate: Candidate
    tier: Tier
    heldout: tuple[Workload, ...] = ()
