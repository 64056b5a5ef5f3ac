"""Kills each part of a running race with SIGKILL, runs the same command again, and compares what was charged.

`python -m tests.benchmarks.survival` prints a table: one undisturbed race, then one for each victim. A race survives
if every trial ends with the evaluations and tokens of the undisturbed one and no process of it is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import JsonValue

from ray_cluster.follow import Standing
from ray_cluster.progress import Progress, State
from ray_cluster.race_folder import RaceFolder, specs
from tests.benchmarks.results import keep

CARD = """
edition = "survival"
name = "survival"
methods = ["best_of_n", "tpe"]
tasks = ["gqa_paged_decode_h32_kv4_d128_ps1"]
timing = "tiny"
judges = 1
[model]
provider = "tuner"
name = "tuner"
[budget]
evaluations = 4
"""
VICTIMS: dict[str, Callable[[str], bool]] = {
    "driver": lambda line: "ray_cluster.main run" in line,
    "trial actor": lambda line: line.startswith("ray::TrialActor"),
    "judge": lambda line: line.startswith("ray::JudgeActor"),
    "desk": lambda line: line.startswith("ray::Desk"),
    "method": lambda line: "suite.host" in line,
    "candidate's zygote": lambda line: "suite/child" in line,
}
"""Name -> whether a command line is that part's."""
PATIENCE_S = 420.0
LEAVE_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """How a race ended: `charged` maps a trial to its evaluations and tokens."""

    victim: str
    killed: int
    runs: int
    charged: dict[str, tuple[int, int]]
    finished: bool
    left: tuple[str, ...]

    def survived(self, undisturbed: Outcome) -> bool:
        return self.finished and not self.left and self.charged == undisturbed.charged


class Race:
    """A race in a folder of its own, run by `derby run` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.card, self.runs = folder / "survival.toml", folder / "runs"
        self.card.write_text(CARD, encoding="utf-8")
        self._seen: dict[int, psutil.Process] = {}

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ray_cluster.main", "run", str(self.card), "--runs", str(self.runs)]
        log = (self.runs.parent / "log").open("ab")
        with log:
            environment = {**os.environ, "CI": "1"}
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def progress(self) -> tuple[Progress, ...]:
        folder = RaceFolder(self.runs, "survival")
        if folder.resolved() is None:
            return ()
        standing = Standing(folder, specs(folder))
        standing.update()
        return standing.rows

    def watch(self, driver: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
        """Note every process of the race until the driver ends or the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while driver.poll() is None and not until():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the race took longer than {PATIENCE_S} s; its log is {self.runs.parent / 'log'}")
            self.note(driver.pid)
            time.sleep(0.1)

    def note(self, pid: int) -> None:
        try:
            driver = psutil.Process(pid)
            family = [driver, *driver.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        self._seen.update({process.pid: process for process in family})

    def kill(self, wanted: Callable[[str], bool]) -> int:
        """SIGKILL the first process of the race that is wanted; returns how many were killed."""
        for process in self._seen.values():
            if wanted(command_line(process)):
                process.kill()
                return 1
        return 0

    def left(self) -> tuple[str, ...]:
        """Processes of the race that are still there after a while."""
        _, alive = psutil.wait_procs(list(self._seen.values()), timeout=LEAVE_S)
        return tuple(f"{process.pid} {command_line(process)[:60]}" for process in alive)


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return ""


def race(victim: str, folder: Path) -> Outcome:
    """Run a race, kill the victim (if it is one) in the middle, run it again until it is finished."""
    one = Race(folder)
    killed = runs = 0
    finished = False
    while runs < 4 and not finished:
        driver = one.start()
        runs += 1
        if victim in VICTIMS and killed == 0:
            one.watch(driver, lambda: any(trial.spent.evaluations >= 1 for trial in one.progress()))
            deadline = time.monotonic() + PATIENCE_S
            while killed == 0 and driver.poll() is None and time.monotonic() < deadline:
                one.note(driver.pid)
                killed = one.kill(VICTIMS[victim])
        one.watch(driver, lambda: False)
        trials = one.progress()
        finished = bool(trials) and all(trial.state is State.FINISHED for trial in trials)
    charged = {trial.method: (trial.spent.evaluations, trial.spent.usage.total) for trial in one.progress()}
    return Outcome(victim, killed, runs, charged, finished, one.left())


def main() -> None:
    """One undisturbed race, then one for each victim; exit code 1 if one did not survive."""
    lines: list[str] = []
    numbers: dict[str, JsonValue] = {}
    survived = True
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        undisturbed: Outcome | None = None
        for index, victim in enumerate(["nobody", *VICTIMS]):
            folder = Path(name) / str(index)
            folder.mkdir()
            one = race(victim, folder)
            undisturbed = undisturbed or one
            alive = one.survived(undisturbed)
            survived &= alive
            charged = ", ".join(
                f"{name}: {count} evals, {tokens} tokens" for name, (count, tokens) in one.charged.items()
            )
            verdict = "survived" if alive else "FAILED"
            lines.append(f"{victim:18} {verdict:8} killed {one.killed}, runs {one.runs}; {charged}; left {one.left}")
            numbers[victim] = {"survived": alive, "runs": one.runs, "left": list(one.left)}
            print(lines[-1], file=sys.stderr, flush=True)
    keep("survival", lines, numbers)
    sys.exit(0 if survived else 1)


if __name__ == "__main__":
    main()
