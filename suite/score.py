"""Points: the only file that turns raw samples into numbers. Pure functions of records.

A quad is four timed calls A-B-B-A (candidate, baseline, baseline, candidate); its log-speedup is
(ln b1 + ln b2 - ln a1 - ln a2) / 2, free of any drift that is linear over the quad. A launch (one pair of fresh
processes) is estimated by the 20 % trimmed mean of its quads, which a preempted call cannot move.

Intervals are 95 %. With three launches or more they are Student's t over launches: between launches of the same
program the ratio was seen to vary by 3-5 %, which no number of calls within one launch reveals. With fewer they are
Yuen's t over quads (Yuen 1974) and say nothing about that variation: `Estimate.over` tells which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from suite.types import Evaluation, Frozen, Launch, Measurement, Split, Status

TRIM = 0.2
CONFIDENCE = 0.95
MIN_FOR_INTERVAL = 3

Logs = NDArray[np.float64]


class Estimate(Frozen):
    """A speedup over the baseline with its 95 % interval; `low` and `high` are None where none can be given."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    over: Literal["launches", "quads", "seeds", "nothing"] = "nothing"

    @property
    def half_width(self) -> float | None:
        """Half the interval relative to the value, e.g. 0.02 for plus or minus 2 %."""
        if self.low is None or self.high is None or self.value <= 0:
            return None
        return (self.high - self.low) / 2 / self.value


ZERO = Estimate(value=0.0, low=0.0, high=0.0)
"""The score of a failure."""


def quads(launch: Launch) -> Logs:
    """Log-speedups of a launch's quads, shape [number of quads]."""
    candidate = np.log(np.asarray(launch.candidate_us, dtype=np.float64)).reshape(-1, 2)
    baseline = np.log(np.asarray(launch.baseline_us, dtype=np.float64)).reshape(-1, 2)
    return np.asarray((baseline - candidate).mean(axis=1))


def _trimmed(logs: Logs) -> float:
    # As scipy's trim_mean, whose checks of its arguments take thirty times as long as this.
    cut = int(TRIM * len(logs))
    return float(np.sort(logs)[cut : len(logs) - cut].mean())


def _yuen_error(logs: Logs) -> tuple[float, int]:
    """Standard error of the trimmed mean and its degrees of freedom."""
    cut = int(TRIM * len(logs))
    kept = len(logs) - 2 * cut
    ordered = np.sort(logs)
    winsorized = np.clip(ordered, ordered[cut], ordered[len(logs) - cut - 1])
    deviation = float(winsorized.std(ddof=1)) * math.sqrt((len(logs) - 1) / (kept * (kept - 1)))
    return deviation, kept - 1


def _from_logs(
    mean: float, error: float, freedom: float, n: int, over: Literal["launches", "quads", "seeds"]
) -> Estimate:
    reach = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error  # Student's t
    return Estimate(value=math.exp(mean), low=math.exp(mean - reach), high=math.exp(mean + reach), n=n, over=over)


def _t_interval(logs: Logs, over: Literal["launches", "seeds"]) -> Estimate:
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return _from_logs(float(logs.mean()), error, len(logs) - 1, len(logs), over)


def speedup(measurement: Measurement) -> Estimate:
    """Baseline time / candidate time on one workload; `ZERO` if it failed or was not timed."""
    return _combined((measurement,)) if _counts((measurement,)) else ZERO


def score(evaluation: Evaluation, split: Split = Split.SEARCH) -> Estimate:
    """Geometric mean of the speedups over the timed workloads of a split.

    One wrong, failed or missing workload makes the whole evaluation `ZERO`.
    """
    timed = tuple(item for item in evaluation.measurements if item.workload.split == split)
    if evaluation.status != Status.PASSED or not _counts(timed):
        return ZERO
    return _combined(timed)


def _counts(timed: Sequence[Measurement]) -> bool:
    return bool(timed) and all(item.status == Status.PASSED and item.launches for item in timed)


def _combined(timed: Sequence[Measurement]) -> Estimate:
    """Over launches if there are enough (launch i of every workload is the same pair of processes), else over quads."""
    launches = min(len(item.launches) for item in timed)
    per_launch = np.array([[_trimmed(quads(item.launches[i])) for item in timed] for i in range(launches)]).mean(axis=1)
    if launches >= MIN_FOR_INTERVAL:
        return _t_interval(per_launch, "launches")
    return _over_quads(timed, float(per_launch.mean()))


def _over_quads(timed: Sequence[Measurement], mean: float) -> Estimate:
    logs = [np.concatenate([quads(launch) for launch in item.launches]) for item in timed]
    count = sum(map(len, logs))
    if min(map(len, logs)) < MIN_FOR_INTERVAL:
        return Estimate(value=math.exp(mean), n=count, over="quads")
    errors = [_yuen_error(values) for values in logs]
    variances = np.array([error**2 for error, _ in errors]) / len(timed) ** 2
    total = float(variances.sum())
    # Welch-Satterthwaite; identical quads leave no variance and so no doubt about the freedom either.
    spread = sum(float(part) ** 2 / freedom for part, (_, freedom) in zip(variances, errors, strict=True))
    freedom = total**2 / spread if spread > 0 else float(count)
    return _from_logs(mean, math.sqrt(total), freedom, count, "quads")


def over_seeds(values: Sequence[float]) -> Estimate:
    """A method's speedup over the seeds of a row: geometric mean, from three seeds on with Student's t on the logs.

    A failed seed (0) makes it 0, as in any geometric mean: with every softer rule a failure could raise the mean of a
    row whose other seeds are worse than the rest.
    """
    if not values or min(values) <= 0:
        return Estimate(value=0.0, low=0.0, high=0.0, n=len(values), over="seeds")
    logs = np.log(np.array(values, dtype=np.float64))
    if len(values) < MIN_FOR_INTERVAL:
        return Estimate(value=math.exp(float(logs.mean())), n=len(values), over="seeds")
    return _t_interval(logs, "seeds")


def over_tasks(estimates: Sequence[Estimate]) -> Estimate:
    """A method's speedup over tasks, from its estimates over seeds on each: the geometric mean, 0 if one is 0.

    The tasks are fixed, so that doubt comes from the seeds alone: the errors of the tasks' log-means are independent
    and add up (Welch-Satterthwaite). There is no interval unless every task has one over seeds.
    """
    count = sum(estimate.n for estimate in estimates)
    if not estimates or min(estimate.value for estimate in estimates) <= 0:
        return Estimate(value=0.0, low=0.0, high=0.0, n=count, over="seeds")
    mean = float(np.mean([math.log(estimate.value) for estimate in estimates]))
    if not all(estimate.over == "seeds" and estimate.low and estimate.high for estimate in estimates):
        return Estimate(value=math.exp(mean), n=count, over="seeds")
    freedoms = np.array([estimate.n - 1 for estimate in estimates])
    reaches = np.array([math.log((estimate.high or 1) / (estimate.low or 1)) / 2 for estimate in estimates])
    variances = (reaches / special.stdtrit(freedoms, (1 + CONFIDENCE) / 2) / len(estimates)) ** 2
    total = float(variances.sum())
    freedom = total**2 / float((variances**2 / freedoms).sum()) if total > 0 else float(freedoms.sum())
    return _from_logs(mean, math.sqrt(total), freedom, count, "seeds")


def candidate_us(measurement: Measurement) -> float | None:
    """Median microseconds of a candidate's timed calls, None if there are none."""
    return _median([sample for launch in measurement.launches for sample in launch.candidate_us])


def baseline_us(measurement: Measurement) -> float | None:
    """Median microseconds of the baseline's timed calls, None if there are none."""
    return _median([sample for launch in measurement.launches for sample in launch.baseline_us])


def _median(samples: Sequence[float]) -> float | None:
    return float(np.median(samples)) if samples else None


def rates(measurement: Measurement) -> tuple[float | None, float | None]:
    """GFLOPS and GB/s of a candidate on a workload (necessary operations and bytes / median time), None if unknown."""
    micros = candidate_us(measurement)
    if micros is None:
        return None, None
    flops, moved = measurement.flops, measurement.bytes_moved
    return (flops / micros / 1e3 if flops else None, moved / micros / 1e3 if moved else None)
