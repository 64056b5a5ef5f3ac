"""How long and how often a judge times, and where it runs: frozen plans, no code that measures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from suite.types import TIMING_PROTOCOL, Frozen, Tier


class TimingPlan(Frozen):
    """How one workload is timed.

    `seconds` is wall time over all launches of a workload, refreshing and flushing included; `min_quads` are taken
    in every launch even if that takes longer. `hopeless_below`: once `min_quads` quads are done (or two, if time is
    up), timing of a workload stops when even the quickest call of the candidate against the slowest of the baseline
    stays below this speedup; the samples taken so far count. None: never. `reference_share` of the timed calls,
    drawn after the call, and at least one in each launch, are compared with the reference as well. `spots`: so many
    pairs of a timed workload and a family of contents that is not timed, drawn by lot, are checked beforehand; None:
    all of them.
    """

    launches: int = Field(ge=1)
    seconds: float = Field(gt=0)
    min_quads: int = Field(default=3, ge=2)
    empty_calls: int = Field(default=30, ge=1)
    hopeless_below: float | None = None
    reference_share: float = Field(default=0.05, ge=0, le=1)
    spots: int | None = Field(default=1, ge=0)


SEARCH = TimingPlan(launches=1, seconds=0.2, hopeless_below=0.5)
"""Four workloads, a build and the check split then take about 2.4 s."""
CHAMPION = TimingPlan(launches=6, seconds=3.0, spots=None)
TINY = TimingPlan(launches=1, seconds=0.02, min_quads=2, empty_calls=20)
"""For tests: the whole path, numbers of no worth."""

Timing = Literal["standard", "brief", "tiny"]
"""What a race is timed by: "standard" ranks; "brief" measures champions for a third of the time, to demonstrate."""
PLANS: Mapping[Timing, tuple[TimingPlan, TimingPlan]] = MappingProxyType(
    {
        "standard": (SEARCH, CHAMPION),
        "brief": (SEARCH, TimingPlan(launches=5, seconds=1.0, spots=6)),
        "tiny": (TINY, TINY),
    }
)
"""Name -> the plans of the search and the champion tier."""


def protocol(timing: str) -> str:
    """The timing protocol of what is timed so; rankings never mix two. Only "standard" bears the standard's name."""
    return TIMING_PROTOCOL if timing == "standard" else f"{TIMING_PROTOCOL}-{timing}"


def _all_cpus() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0)))


class JudgeSettings(Frozen):
    """What a judge may use: `cpus` (both sides run one thread on each), a folder for built artifacts, two plans."""

    cpus: tuple[int, ...] = Field(default_factory=_all_cpus, min_length=1)
    cache: Path = Path.home() / ".cache" / "kernel-derby"
    search: TimingPlan = SEARCH
    champion: TimingPlan = CHAMPION
    screen: bool = True
    """Off only where it is tested that *running* a refused candidate is safe as well."""
    memory_bytes: int = 8 << 30
    """Address space of a candidate."""
    busy_limit: float = 0.10
    """Share of one core that other processes may use before an evaluation is marked busy."""

    def timed(self, timing: Timing) -> JudgeSettings:
        """These settings with the plans called `timing`."""
        search, champion = PLANS[timing]
        return self.model_copy(update={"search": search, "champion": champion})

    @property
    def protocol(self) -> str:
        """The timing protocol these plans keep to: only the standard ones may bear the standard's name."""
        plans = (self.search, self.champion)
        name = next((name for name, known in PLANS.items() if known == plans), "custom")
        return protocol(name)

    def plan(self, tier: Tier) -> TimingPlan:
        return self.search if tier == Tier.SEARCH else self.champion
