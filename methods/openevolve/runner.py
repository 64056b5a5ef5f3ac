"""OpenEvolve's process: `python -m methods.openevolve.runner HOME ATTEMPT SUPERVISOR [CHECKPOINT]`.

Exit code 0: it gave up of itself. Any other end that the supervisor did not ask for is a death, a broken pool of
workers included, which the package itself takes for the end of its iterations.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openevolve import Config, process_parallel
from openevolve import OpenEvolve as Package

from methods.openevolve import worker
from methods.openevolve.settings import WITHOUT_END, Home
from suite import confine
from suite.client import GATEWAY

BROKEN = 3


class Dice:
    """Seeded numbers for `uuid.uuid4`, whose order the package's sets follow, and for `random` in forked workers."""

    def __init__(self, seed: str) -> None:
        self._seed, self._forks, self._ids = seed, 0, random.Random(seed)

    def uuid4(self) -> uuid.UUID:
        """In place of the standard library's."""
        return uuid.UUID(int=self._ids.getrandbits(128), version=4)

    def before_fork(self) -> None:
        self._forks += 1

    def in_child(self) -> None:
        """A stream of its own for every worker: from the same one they would draw the same ids."""
        self._ids.seed(f"{self._seed}:{self._forks}")
        random.seed(f"{self._seed}:{self._forks}:random")


class Watch:
    """Stands before the package's tracer, hears of every iteration, and ends the run when nothing comes of them."""

    def __init__(self, tracer: Any, patience: int, give_up: Callable[[], None]) -> None:
        self._tracer, self._patience, self._give_up = tracer, patience, give_up
        self._useless = 0

    @property
    def gave_up(self) -> bool:
        return self._useless >= self._patience

    def log_trace(self, **record: Any) -> None:
        self._useless = 0
        self._tracer.log_trace(**record)

    def log_failure(self, **record: Any) -> None:
        self._tracer.log_failure(**record)
        if record.get("evolution_mode") is None:
            return  # the worker died
        self._useless += 1
        if self.gave_up:
            self._give_up()

    def close(self) -> None:
        self._tracer.close()


def run(home: Home, attempt: int, checkpoint: str | None) -> int:
    """One attempt, in the folder of this process; returns the exit code."""
    order = json.loads(home.order.read_bytes())
    _steady(Dice(f"{order['seed']}:{attempt}"))
    os.environ[worker.REFUSAL] = str(home.refusal)
    process_parallel._run_iteration_worker = worker.run_iteration
    evaluation = str(Path(__file__).with_name("evaluation.py"))
    package = Package(order["starter"], evaluation, _config(order["config"]), str(home.attempt(attempt)))
    watch = Watch(
        package.evolution_tracer, order["give_up_after"], lambda: package.parallel_controller.request_shutdown()
    )
    package.evolution_tracer = watch
    asyncio.run(package.run(iterations=WITHOUT_END, checkpoint_path=checkpoint))
    return 0 if watch.gave_up else BROKEN


def _config(words: dict[str, Any]) -> Config:
    """The package's configuration; its client sends no header, so the path tells the gateway the edit format."""
    edits = "search_replace" if words["diff_based_evolution"] else "whole"
    words["llm"]["api_base"] = f"{os.environ[GATEWAY]}/{edits}/v1"
    return Config.from_dict(words)


def _steady(dice: Dice) -> None:
    """Make this process and its workers repeatable, and mortal: no worker outlives it."""
    runner = os.getpid()

    def in_child() -> None:
        confine.die_with(runner, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not the runner's handler, which would let it work on
        dice.in_child()

    uuid.uuid4 = dice.uuid4
    os.register_at_fork(before=dice.before_fork, after_in_child=in_child)


def main() -> int:
    """Reads its order; dies with the supervisor."""
    folder, attempt, supervisor, *checkpoint = sys.argv[1:]
    confine.die_with(int(supervisor), signal.SIGKILL)
    return run(Home(Path(folder)), int(attempt), checkpoint[0] if checkpoint else None)


if __name__ == "__main__":
    sys.exit(main())
