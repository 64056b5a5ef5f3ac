"""How much of the judge's cpus other processes used: the mark "machine busy"."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

IDLE_FIELDS = (3, 4)
"""Of a cpu's line in /proc/stat: idle and iowait. They are exact where the busy fields are sampled by ticks."""


def idle_s(cpus: Iterable[int], text: str) -> float:
    """Seconds these cpus have idled, from the text of /proc/stat."""
    wanted = {f"cpu{cpu}" for cpu in cpus}
    fields = [line.split() for line in text.splitlines()]
    ticks = sum(int(line[1 + field]) for line in fields if line and line[0] in wanted for field in IDLE_FIELDS)
    return ticks / os.sysconf("SC_CLK_TCK")


class ForeignLoad:
    """Foreign time since `start`: what was neither idle nor used by this process and the ones it times.

    Time stolen by the hypervisor counts as foreign: it is lost to the timed call all the same.
    """

    def __init__(
        self, cpus: tuple[int, ...], children_cpu_s: Callable[[], float], stat: Path = Path("/proc/stat")
    ) -> None:
        self._cpus, self._children, self._stat = cpus, children_cpu_s, stat
        self._begin = self._now()

    def _now(self) -> tuple[float, float, float]:
        used = time.process_time() + self._children()
        return time.perf_counter(), idle_s(self._cpus, self._stat.read_text()), used

    def share(self) -> float:
        """Foreign seconds per second, 1.0 being one whole core; never negative."""
        wall, idle, used = (now - then for now, then in zip(self._now(), self._begin, strict=True))
        return max(0.0, (wall * len(self._cpus) - idle - used) / wall) if wall > 0 else 0.0
