"""The driver starts again what died, gives up what dies without progress, and stops in order."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from ray_cluster.actors import Ended
from ray_cluster.driver import STRIKES, Driver
from suite.trial import TrialOrder
from tests.ray_cluster.events import begun
from tests.ray_cluster.stage import card


class Stage:
    """Places that play a script: for each trial, how its starts end and how many lines its ledger gained."""

    def __init__(self, script: dict[str, list[tuple[str, int]]]) -> None:
        self.script = {trial: deque(endings) for trial, endings in script.items()}
        self.lines: dict[str, int] = {}
        self.starts: list[str] = []
        self.most = 0
        self.stopped = False
        self._running: list[str] = []

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self._running)

    def start(self, order: TrialOrder) -> None:
        self.starts.append(order.spec.id)
        self._running.append(order.spec.id)
        self.most = max(self.most, len(self._running))

    def wait(self, timeout_s: float) -> list[Ended]:
        if not self._running:
            return []
        trial = self._running.pop(0)
        ending, gained = self.script[trial].popleft()
        self.lines[trial] = self.lines.get(trial, 0) + gained
        return [Ended(trial, died="killed") if ending == "died" else Ended(trial, outcome=ending)]

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def orders(tmp_path: Path) -> list[TrialOrder]:
    return begun(tmp_path, card(seeds=2)).orders()


def drive(stage: Stage, orders: list[TrialOrder], at_once: int = 2) -> tuple[dict[str, Ended], list[str]]:
    said: list[str] = []
    driver = Driver(stage, at_once, lambda order: stage.lines.get(order.spec.id, 0), said.append)
    return driver.run(orders), said


def test_all_trials_end_and_no_more_run_at_once_than_may(orders: list[TrialOrder]) -> None:
    stage = Stage({order.spec.id: [("finished", 5)] for order in orders})
    ended, said = drive(stage, orders)
    assert {one.outcome for one in ended.values()} == {"finished"} and len(ended) == 4
    assert stage.most == 2 and said == []


def test_a_dead_trial_is_started_again(orders: list[TrialOrder]) -> None:
    one = orders[0]
    stage = Stage({one.spec.id: [("died", 3), ("finished", 2)]})
    ended, said = drive(stage, [one])
    assert ended[one.spec.id].outcome == "finished" and len(stage.starts) == 2
    assert "goes on from its ledger" in said[0]


def test_deaths_without_progress_are_counted_and_end_it(orders: list[TrialOrder]) -> None:
    one = orders[0]
    stage = Stage({one.spec.id: [("died", 0)] * STRIKES})
    ended, said = drive(stage, [one])
    assert ended[one.spec.id].died == "killed" and len(stage.starts) == STRIKES
    assert "given up" in said[-1]


def test_progress_forgives_earlier_deaths(orders: list[TrialOrder]) -> None:
    one = orders[0]
    script = [("died", 0), ("died", 1), ("died", 0), ("died", 4), ("died", 0), ("finished", 1)]
    stage = Stage({one.spec.id: script})
    ended, _ = drive(stage, [one])
    assert ended[one.spec.id].outcome == "finished"


def test_stopping_asks_the_running_and_begins_no_others(orders: list[TrialOrder]) -> None:
    stage = Stage({order.spec.id: [("suspended", 1)] for order in orders})
    driver = Driver(stage, 2, lambda order: 0, lambda text: None)
    begin = stage.start

    def start_and_stop(order: TrialOrder) -> None:
        begin(order)
        if len(stage.starts) == 2:
            driver.stopping.set()

    stage.start = start_and_stop  # type: ignore[method-assign]
    ended = driver.run(orders)
    assert stage.stopped
    assert set(ended) < {order.spec.id for order in orders} and len(stage.starts) == 2


def test_stopped_before_it_began_nothing_is_started(orders: list[TrialOrder]) -> None:
    stage = Stage({})
    driver = Driver(stage, 2, lambda order: 0, lambda text: None)
    driver.stopping.set()
    assert driver.run(orders) == {} and stage.starts == []
