"""Places a race on Ray: one actor for each judge, one for each running trial, and a desk between them.

A trial actor holds no whole core: it waits for its model and for the desk. A judge owns its cores. All retries are
ours: a dead judge turns the evaluation it had into an `InfraError` (refunded, tried again by the trial), a dead trial
actor is started again by the driver and goes on from its ledger. Everything that Ray knows stays in this file and in
`actors.py`; outside there are `TrialOrder`s going in and `Ended`s coming out.
"""

from __future__ import annotations

import functools
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import ray
from ray.exceptions import RayActorError, RayError

from ray_cluster.actors import Desk, Ended, JudgeActor, JudgeMaker, TrialActor
from ray_cluster.models import KEYS
from suite.errors import InfraError
from suite.trial import TrialOrder

OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Orders and verdicts are small; Ray's default would reserve a third of the memory."""
START_S = 120.0
_REMOTE: Any = ray.remote
"""Ray's own types know functions, not what an actor class needs."""
PRIVATE = (*KEYS.values(), "MLFLOW_RUN_ID", "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
"""Never inherited by a worker: a provider's key is for trials, which are handed it; a run id would be shared by all; an
address would lead to somebody else's cluster. With no mode set, Ray turns token authentication on for a new local
cluster; setting it here would come after Ray read it."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
}


@dataclass(frozen=True)
class ClusterPlan:
    """What a local cluster consists of. `judge` makes the evaluator that owns a set of cores (the real judge, or a
    scripted one where only placement is tested); `keys` are environment variables that trial actors alone get."""

    judges: tuple[tuple[int, ...], ...]
    judge: JudgeMaker
    keys: dict[str, str]


class Cluster:
    """A Ray cluster of this process's own, for as long as a `with` block. Start trials, collect their endings.

    Raises `InfraError` on entering if the judges do not come up.
    """

    def __init__(self, plan: ClusterPlan) -> None:
        self._plan = plan
        self._stack = ExitStack()
        self._judges: list[Any] = []
        self._desk: Any = None
        self._trials: dict[str, Any] = {}
        self._running: dict[Any, str] = {}

    def __enter__(self) -> Cluster:
        with ExitStack() as building:
            building.enter_context(_local_ray(len(self._plan.judges)))
            names = [f"judge-{index}" for index in range(len(self._plan.judges))]
            self._judges = [self._judge(*one) for one in zip(names, self._plan.judges, strict=True)]
            self._await([one.ready.remote() for one in self._judges], "the judges")
            self._desk = _REMOTE(num_cpus=0, max_restarts=-1, max_task_retries=0)(Desk).remote(names)
            self._stack = building.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _judge(self, name: str, cores: tuple[int, ...]) -> Any:
        actor = _REMOTE(num_cpus=0, resources={"judge": 1}, max_restarts=-1, max_task_retries=0)(JudgeActor)
        return actor.options(name=name).remote(self._plan.judge, cores)

    def _await(self, references: list[Any], what: str) -> None:
        try:
            ray.get(references, timeout=START_S)
        except RayError as error:
            raise InfraError(f"{what} did not start: {_last_line(error)}") from error

    def start(self, order: TrialOrder) -> None:
        """Give the trial a fresh actor and run it, or go on with it."""
        trial = order.spec.id
        actor = _REMOTE(num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=2)(TrialActor)
        self._trials[trial] = actor.remote(self._desk, self._plan.keys)
        self._running[self._trials[trial].run.remote(order)] = trial

    def wait(self, timeout_s: float) -> list[Ended]:
        """Trials that ended since the last call, after at most `timeout_s` seconds."""
        done, _ = ray.wait(list(self._running), num_returns=len(self._running), timeout=timeout_s, fetch_local=False)
        return [self._collect(reference) for reference in done]

    def _collect(self, reference: Any) -> Ended:
        trial = self._running.pop(reference)
        actor = self._trials.pop(trial)
        try:
            ended: Ended = ray.get(reference)
        except RayActorError as error:
            ended = Ended(trial, died=f"its process died: {_last_line(error)}")
        except RayError as error:
            ended = Ended(trial, died=_last_line(error))
        ray.kill(actor)
        return ended

    def stop(self) -> None:
        """Ask every running trial to suspend itself after the evaluations under way."""
        for actor in self._trials.values():
            actor.stop.remote()

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self._running.values())

    def pids(self) -> dict[str, int]:
        """Process ids of the judges and running trials by name, for whoever wants to see them (or to kill one)."""
        actors = {f"judge-{index}": one for index, one in enumerate(self._judges)} | self._trials
        found = ray.get([one.pid.remote() for one in actors.values()], timeout=START_S)
        return dict(zip(actors, found, strict=True))


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


@contextmanager
def _local_ray(judges: int) -> Iterator[None]:
    """`ray.init` on this machine alone: private token, private folder, nothing left behind."""
    # A short path: Ray's sockets live there and their names may have 107 bytes.
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"derby-ray-{os.getpid()}-"))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(_token(), encoding="ascii")
    with _environment({**SETTINGS, "RAY_AUTH_TOKEN_PATH": str(token)}):
        try:
            ray.init(
                address="local",
                namespace="derby",
                num_cpus=max(2, os.cpu_count() or 1),
                resources={"judge": float(judges)},
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=OBJECT_STORE_BYTES,
                _temp_dir=str(folder),
            )
            yield
        finally:
            children = psutil.Process().children(recursive=True)
            ray.shutdown()
            _, left = psutil.wait_procs(children, timeout=5)
            for process in left:
                _kill(process)
            shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _token() -> str:
    """This process's token: one for all its clusters, since Ray reads it once and remembers it."""
    return secrets.token_hex(32)


def _sweep() -> None:
    """Remove the private folders of drivers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob("derby-ray-*-*"):
        owner = folder.name.split("-")[2]
        if owner.isdigit() and not psutil.pid_exists(int(owner)) and folder.stat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
        process.wait(5)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        pass


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Environment variables of this process (Ray's daemons inherit them) while the cluster is up, restored after."""
    before = {name: os.environ.get(name) for name in (*settings, *PRIVATE)}
    for name in PRIVATE:
        os.environ.pop(name, None)
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
