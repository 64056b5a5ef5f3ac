"""Drives a race: starts trials as places come free, starts dead ones again, stops in order. Knows nothing of Ray."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ray_cluster.actors import Ended
from suite.trial import TrialOrder

STRIKES = 3
"""Deaths of a trial's process in a row, without a new line in its ledger, before it is given up."""
GRACE_S = 60.0
"""How long a stopping trial may take over the evaluations under way before its process is ended."""
PAUSE_S = 0.5


class Places(Protocol):
    """Where trials run: the cluster, as far as the driver needs it."""

    def start(self, order: TrialOrder) -> None: ...
    def wait(self, timeout_s: float) -> list[Ended]: ...
    def stop(self) -> None: ...
    @property
    def running(self) -> tuple[str, ...]: ...


@dataclass
class _Life:
    """A trial's deaths: how often in a row, and how far its ledger had come when it last began."""

    order: TrialOrder
    lines: int
    strikes: int = 0


@dataclass
class Driver:
    """One race. `lines` says how many lines a trial's ledger has; `tell` is given a sentence for the user."""

    places: Places
    at_once: int
    lines: Callable[[TrialOrder], int]
    tell: Callable[[str], None]
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, orders: Sequence[TrialOrder]) -> dict[str, Ended]:
        """Run all trials to an ending each. Those not begun when `stopping` is set have none."""
        waiting = deque(_Life(order, 0) for order in orders)
        alive: dict[str, _Life] = {}
        ended: dict[str, Ended] = {}
        while (waiting and not self.stopping.is_set()) or alive:
            if self.stopping.is_set():
                return ended | self._stop(alive)
            while waiting and len(alive) < self.at_once:
                self._start(waiting.popleft(), alive)
            for one in self.places.wait(PAUSE_S):
                life = alive.pop(one.trial)
                if one.died is not None and self._again(life, one.died):
                    waiting.append(life)
                else:
                    ended[one.trial] = one
        return ended

    def _start(self, life: _Life, alive: dict[str, _Life]) -> None:
        life.lines = self.lines(life.order)
        alive[life.order.spec.id] = life
        self.places.start(life.order)

    def _again(self, life: _Life, why: str) -> bool:
        """Whether a trial whose process died is to be started again."""
        life.strikes = 1 if self.lines(life.order) > life.lines else life.strikes + 1
        again = life.strikes < STRIKES
        what = "it goes on from its ledger" if again else f"given up after {STRIKES} deaths without progress"
        self.tell(f"{life.order.spec.id}: {why}; {what}")
        return again

    def _stop(self, alive: dict[str, _Life]) -> dict[str, Ended]:
        """Let running trials suspend themselves; after the grace time they are left to the cluster's end."""
        self.places.stop()
        ended: dict[str, Ended] = {}
        deadline = time.monotonic() + GRACE_S
        while len(ended) < len(alive) and time.monotonic() < deadline:
            for one in self.places.wait(PAUSE_S):
                ended[one.trial] = replace(one, outcome=one.outcome or "suspended", died=None)
        return ended
