"""On Ray: judges are shared and never overlap, whatever is killed comes back, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ray_cluster.actors import Ended
from ray_cluster.driver import Driver
from ray_cluster.placement import Cluster, ClusterPlan
from ray_cluster.placement_plan import cores_for
from suite.events import Evaluated, Refunded
from suite.ledger import read
from suite.trial import TrialOrder
from tests.ray_cluster.events import begun
from tests.ray_cluster.scripted import ScriptedJudge
from tests.ray_cluster.stage import card

SECONDS = 0.3


@pytest.mark.parametrize(
    ("judges", "cores", "expected"),
    [
        (None, (0,), ((0,),)),
        (None, (4, 5), ((4, 5),)),
        (None, (0, 1, 2), ((0, 1),)),
        (None, (0, 1, 2, 3), ((0, 1), (2, 3))),
        (1, (0, 1, 2, 3), ((0, 1),)),
        (9, (0, 1), ((0, 1),)),
    ],
)
def test_a_judge_owns_two_cores(
    judges: int | None, cores: tuple[int, ...], expected: tuple[tuple[int, ...], ...]
) -> None:
    assert cores_for(judges, cores) == expected


def rays_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(("RAY_", "MLFLOW_"))}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One cluster with one scripted judge for all tests here."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    environment = rays_environment()
    with Cluster(ClusterPlan(((0, 1),), ScriptedJudge(SECONDS), {})) as up:
        yield up
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    assert rays_environment() == environment


def orders(tmp_path: Path, seeds: int, evaluations: int = 3) -> list[TrialOrder]:
    return begun(tmp_path, card(methods=["tpe"], model=None, seeds=seeds, budget={"evaluations": evaluations})).orders()


def drive(cluster: Cluster, race: list[TrialOrder]) -> tuple[dict[str, Ended], list[str]]:
    said: list[str] = []
    return Driver(cluster, 4, lines, said.append).run(race), said


def lines(order: TrialOrder) -> int:
    return len(read(order.folder / "ledger.jsonl")) if has_begun(order) else 0


def has_begun(order: TrialOrder) -> bool:
    return (order.folder / "ledger.jsonl").exists()


def evaluated(order: TrialOrder) -> list[Evaluated]:
    return [entry.event for entry in read(order.folder / "ledger.jsonl") if isinstance(entry.event, Evaluated)]


@pytest.mark.slow
def test_trials_share_a_judge_one_job_at_a_time(cluster: Cluster, tmp_path: Path) -> None:
    race = orders(tmp_path, seeds=2)
    began = time.monotonic()
    ended, _ = drive(cluster, race)
    jobs = sum(len(evaluated(order)) for order in race) + len(race)  # and a champion each
    assert {one.outcome for one in ended.values()} == {"finished"}
    assert time.monotonic() - began >= jobs * SECONDS, "two jobs were judged at the same time"
    assert all(len(evaluated(order)) == 4 for order in race)


def kill_once(cluster: Cluster, wanted: str, race: list[TrialOrder]) -> threading.Thread:
    """Kill a process of the cluster once the first trial has an evaluation."""

    def work() -> None:
        while not (has_begun(race[0]) and evaluated(race[0])):
            time.sleep(0.05)
        pids = cluster.pids()
        os.kill(next(pid for name, pid in pids.items() if name.startswith(wanted)), signal.SIGKILL)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_killed_judge_costs_nobody_anything(cluster: Cluster, tmp_path: Path) -> None:
    race = orders(tmp_path, seeds=1, evaluations=5)
    killer = kill_once(cluster, "judge", race)
    ended, _ = drive(cluster, race)
    killer.join()
    assert {one.outcome for one in ended.values()} == {"finished"}
    events = [entry.event for entry in read(race[0].folder / "ledger.jsonl")]
    assert sum(isinstance(event, Refunded) for event in events) <= 1
    assert evaluated(race[0])[-1].spent.evaluations == 5


@pytest.mark.slow
def test_a_killed_trial_goes_on_from_its_ledger(cluster: Cluster, tmp_path: Path) -> None:
    race = orders(tmp_path, seeds=1, evaluations=5)
    killer = kill_once(cluster, "tpe", race)
    ended, said = drive(cluster, race)
    killer.join()
    assert {one.outcome for one in ended.values()} == {"finished"}
    assert any("goes on from its ledger" in sentence for sentence in said)
    numbers = [event.number for event in evaluated(race[0])]
    assert numbers == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_user_error_of_a_trial_comes_back_in_three_parts(cluster: Cluster, tmp_path: Path) -> None:
    race = orders(tmp_path, seeds=1)
    race[0].folder.mkdir(parents=True)
    (race[0].folder / "ledger.jsonl").write_text('{"no": "ledger"}\n', encoding="utf-8")
    cluster.start(race[0])
    ended: list[Ended] = []
    while not ended:
        ended = cluster.wait(1.0)
    assert ended[0].error is not None and all(ended[0].error)


@pytest.mark.slow
def test_a_stopped_trial_is_suspended_and_goes_on_later(cluster: Cluster, tmp_path: Path) -> None:
    race = orders(tmp_path, seeds=1, evaluations=6)
    driver = Driver(cluster, 1, lambda order: 0, lambda text: None)

    def stop() -> None:
        while not (has_begun(race[0]) and evaluated(race[0])):
            time.sleep(0.05)
        driver.stopping.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    ended = driver.run(race)
    stopper.join()
    assert ended[race[0].spec.id].outcome == "suspended"
    assert len(evaluated(race[0])) < 7
    again, _ = drive(cluster, race)
    assert again[race[0].spec.id].outcome == "finished" and len(evaluated(race[0])) == 7
