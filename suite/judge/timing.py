"""Times a candidate against the baseline: A-B-B-A quads of cold calls by the judge's clock, every answer checked.

A pair is one call of each side on the same fresh contents at the same addresses; a quad is the pair candidate, baseline
and then, on other contents, the pair baseline, candidate, so that what depends on the position cancels out. Before each
call the caches are emptied; the side that is not called is stopped. The round trip of a call that calls nothing, taken
with the baseline's process (the candidate's could stretch it), is subtracted from both sides.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from suite.compare import Comparison
from suite.errors import InfraError
from suite.judge.busy import ForeignLoad
from suite.judge.check import Tally, wrong
from suite.judge.course import Course, Inputs
from suite.judge.memory import Flusher, Pool
from suite.judge.plan import TimingPlan
from suite.judge.sides import Memory, Rejected, Scene, Side, set_scene
from suite.types import Launch, Status, Workload

PATIENCE, GRACE_S = 50, 1.0
"""A timed call may take this many times the baseline's, plus this many seconds."""
BUSY = 0.5
"""Share of a core used by others from which on a launch without any sound quad is laid to them."""


@dataclass(frozen=True)
class Tools:
    """What timing needs besides the two sides."""

    plan: TimingPlan
    cpus: tuple[int, ...]
    pool: Pool
    flusher: Flusher
    rng: np.random.Generator


@dataclass(frozen=True)
class Quad:
    """Net seconds of four calls: the candidate's first and fourth, the baseline's second and third."""

    candidate: tuple[float, float]
    baseline: tuple[float, float]

    @property
    def counts(self) -> bool:
        """Whether each of the four is a time at all: finite, and longer than a call of nothing."""
        return all(math.isfinite(each) and each > 0 for each in (*self.candidate, *self.baseline))


def hopeless(quads: list[Quad], plan: TimingPlan, *, out_of_time: bool) -> bool:
    """Whether more quads are a waste: the quickest call against the baseline's slowest is below the plan's bound."""
    if plan.hopeless_below is None or len(quads) < (2 if out_of_time else plan.min_quads):
        return False
    slowest = max(each for quad in quads for each in quad.baseline)
    quickest = min(each for quad in quads for each in quad.candidate)
    return quickest > 0 and slowest / quickest < plan.hopeless_below


class Stopwatch:
    """Times workloads in one pair of processes (a launch); both sides are loaded."""

    def __init__(self, course: Course, candidate: Side, baseline: Side, memory: Memory, tools: Tools) -> None:
        self._course, self._memory, self._tools = course, memory, tools
        self._candidate, self._baseline = candidate, baseline
        self._overhead_s: float | None = None

    def time(self, workload: Workload, contents: Inputs, seconds: float, tally: Tally) -> Launch:
        """Time one workload for about `seconds`, starting from `contents`. Raises `Rejected`."""
        scene = set_scene(self._course.task.definition, workload, self._memory.inputs, contents)
        for side in (self._candidate, self._baseline):
            side.take(scene)
            side.freeze()
        overhead = self._overhead()
        run = _Run(self._course, self._candidate, self._baseline, self._tools, _Subject(scene, tally))
        run.warm_up()
        load = ForeignLoad(self._tools.cpus, lambda: self._candidate.cpu_s() + self._baseline.cpu_s())
        begin = time.perf_counter()
        quads = run.quads(seconds, overhead)
        if not quads and (load.share() > BUSY or not run.baseline_is_sound):
            raise InfraError("no call could be timed: other processes use this machine")
        if not quads:
            raise Rejected(Status.POLICY, "the timed calls came back faster than calls that do nothing")
        return Launch(
            candidate_us=tuple(each * 1e6 for quad in quads for each in quad.candidate),
            baseline_us=tuple(each * 1e6 for quad in quads for each in quad.baseline),
            overhead_us=overhead * 1e6,
            foreign_cpu=load.share(),
            seconds=time.perf_counter() - begin,
        )

    def _overhead(self) -> float:
        """Seconds of an empty round trip, from caches as cold as the timed calls find them.

        The lowest decile: near the median on a quiet machine, and preemption only ever lengthens a trip.
        """
        if self._overhead_s is None:
            trips = []
            for _ in range(self._tools.plan.empty_calls):
                self._tools.flusher.flush()
                trips.append(self._baseline.empty_call())
            self._overhead_s = float(np.quantile(trips, 0.1))
        return self._overhead_s


@dataclass(frozen=True)
class _Subject:
    """What is being timed, and where its errors are counted."""

    scene: Scene
    tally: Tally


class _Run:
    """One workload in one launch."""

    def __init__(self, course: Course, candidate: Side, baseline: Side, tools: Tools, subject: _Subject) -> None:
        self._course, self._tools, self._scene, self._tally = course, tools, subject.scene, subject.tally
        self._candidate, self._baseline = candidate, baseline
        self._deadline_s = course.task.timeout_s
        self._referenced = 0
        self.baseline_is_sound = True
        """Whether none of the baseline's calls was shorter than an empty one."""
        self._aside_s = 0.0
        """Seconds spent on the reference, which the plan's seconds do not include."""

    def warm_up(self) -> None:
        """One untimed call of each side, compared; from the baseline's follows how long the candidate may take."""
        self._refresh()
        patience = PATIENCE * self._baseline.call(self._course.task.timeout_s) + GRACE_S
        self._deadline_s = min(self._course.task.timeout_s, patience)
        self._candidate.call(self._deadline_s)
        self._compare()

    def quads(self, seconds: float, overhead: float) -> list[Quad]:
        """Quads until the time is up, at least the plan's minimum, fewer for a hopeless candidate.

        A quad with a call shorter than an empty one is no measurement and left out; three times the minimum are tried.
        """
        begin, tried = time.perf_counter(), 0
        least = self._tools.plan.min_quads
        quads: list[Quad] = []
        while True:
            quad, tried = self._quad(overhead), tried + 1
            quads += [quad] if quad.counts else []
            self.baseline_is_sound &= min(quad.baseline) > 0
            spent = time.perf_counter() - begin - self._aside_s
            out_of_time = spent * (tried + 1) / tried > seconds
            enough = len(quads) >= least or tried >= 3 * least
            if (out_of_time and enough) or hopeless(quads, self._tools.plan, out_of_time=out_of_time):
                break
        if not self._referenced:  # the contents of the last pair are still there
            self._refer()
        return quads

    def _quad(self, overhead: float) -> Quad:
        first, second = self._pair(candidate_first=True)
        fourth, third = self._pair(candidate_first=False)
        return Quad((first - overhead, fourth - overhead), (second - overhead, third - overhead))

    def _pair(self, *, candidate_first: bool) -> tuple[float, float]:
        """Seconds of one timed call of each side on the same fresh contents: candidate, baseline."""
        self._refresh()
        if candidate_first:
            candidate, baseline = self._time_candidate(), self._time_baseline()
        else:
            baseline, candidate = self._time_baseline(), self._time_candidate()
        self._compare()
        # Drawn after the call: before it, nobody knows which calls will meet the reference.
        if self._tools.rng.random() < 2 * self._tools.plan.reference_share:
            self._refer()
        return candidate, baseline

    def _refresh(self) -> None:
        scene = self._scene
        self._course.refresh(scene.inputs, scene.workload.params, self._tools.pool, self._tools.rng)
        self._candidate.reset()
        self._baseline.reset()

    def _time_candidate(self) -> float:
        self._tools.flusher.flush()
        return self._candidate.call(self._deadline_s)

    def _time_baseline(self) -> float:
        self._tools.flusher.flush()
        # That the candidate did not run meanwhile is seen at its own next call (Child).
        return self._baseline.call(self._course.task.timeout_s)

    def _compare(self) -> None:
        """The candidate's outputs against the baseline's; where they differ, the reference decides who is wrong."""
        got, want = self._candidate.outputs(), self._baseline.outputs()
        comparison = self._course.compare(got, want)
        if not comparison.ok:
            truth = self._course.truth(self._scene.inputs)
            self._trust(self._course.compare(want, truth))
            comparison = self._course.compare(got, truth)
            self._take(comparison, referenced=True)
        self._take(comparison, referenced=False)

    def _refer(self) -> None:
        """Rows of the candidate's last outputs against the reference."""
        begin = time.perf_counter()
        self._take(
            self._course.spot_check(self._scene.inputs, self._candidate.outputs(), self._tools.rng), referenced=True
        )
        self._referenced += 1
        self._aside_s += time.perf_counter() - begin

    def _take(self, comparison: Comparison, *, referenced: bool) -> None:
        if not comparison.ok:
            raise Rejected(Status.INCORRECT_NUMERICAL, wrong(self._candidate, comparison))
        self._tally.add(comparison, referenced=referenced)

    @staticmethod
    def _trust(comparison: Comparison) -> None:
        if not comparison.ok:
            raise InfraError(f"the baseline's own output is wrong: {comparison.detail}")
