"""Kills each part of a running race with SIGKILL, runs the same command again, and compares what was charged.

`python -m tests.benchmarks.survival` prints a table: for each card one undisturbed race, then one for each victim. A
race survives if every trial ends with the evaluations of the undisturbed one, its ledger holds one verdict for each of
them and for the starter, no candidate was judged twice, its champion was measured once, every token charged is one of
a recorded reply, and no process is left. Where no prompt shows a measured time (best_of_n, tpe) the tokens are those
of the undisturbed race as well. Tokens reserved for a reply lost in the kill are charged too, and shown apart. Run it
on a tree that nobody edits meanwhile: another brief is another race.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import JsonValue

from ray_cluster.follow import Standing
from ray_cluster.progress import Progress, State
from ray_cluster.race_folder import RaceFolder, specs
from suite.events import ChampionMeasured, Evaluated, ModelCalled
from suite.ledger import read
from tests.benchmarks.results import keep

CARD = """
edition = "survival"
name = "survival"
methods = {methods}
tasks = ["gqa_paged_decode_h32_kv4_d128_ps1"]
timing = "tiny"
judges = 1
[model]
provider = "tuner"
name = "tuner"
[budget]
evaluations = 4
"""
Victim = Callable[[psutil.Process], bool]
"""Whether a process is the one to kill."""

CONTROLS: dict[str, Victim] = {
    "driver": lambda process: "ray_cluster.main run" in command_line(process),
    "trial actor": lambda process: command_line(process).startswith("ray::TrialActor"),
    "judge": lambda process: command_line(process).startswith("ray::JudgeActor"),
    "desk": lambda process: command_line(process).startswith("ray::Desk"),
    "method's keeper": lambda process: depth(process, "suite.host") == 0,
    "method": lambda process: innermost(process, "suite.host"),
    "zygote": lambda process: depth(process, "suite/child") == 0,
    "candidate": lambda process: depth(process, "suite/child") == 2,  # zygote, keeper, candidate
}
CONTENDERS: dict[str, Victim] = {
    "gateway": CONTROLS["trial actor"],  # the gateway of a trial is served by its actor
    "k_search": lambda process: innermost(process, "suite.host") and "/k_search-" in home(process),
    "openevolve": lambda process: depth(process, "methods.openevolve.runner") == 0,
    "its worker": lambda process: depth(process, "methods.openevolve.runner") == 1,
}
CARDS: dict[str, dict[str, Victim]] = {'["best_of_n", "tpe"]': CONTROLS, '["k_search", "openevolve"]': CONTENDERS}
"""Methods of a race -> victims in it by name."""
STEADY = frozenset({"best_of_n", "tpe"})
"""Methods whose prompts hold nothing that was measured, so that two races ask the same."""
PATIENCE_S = 420.0
LEAVE_S = 30.0


@dataclass(frozen=True)
class Charge:
    """What a trial was charged, and what its ledger holds."""

    evaluations: int
    tokens: int
    unconfirmed: int
    recorded: int
    verdicts: int
    candidates: int
    champions: int

    @property
    def sound(self) -> bool:
        once = self.verdicts == self.candidates == self.evaluations + 1 and self.champions == 1
        return once and self.tokens == self.recorded


@dataclass(frozen=True)
class Outcome:
    """How a race ended: `charged` by method."""

    victim: str
    killed: int
    runs: int
    charged: dict[str, Charge]
    finished: bool
    left: tuple[str, ...]

    def survived(self, undisturbed: Outcome) -> bool:
        return self.finished and not self.left and self.sums() == undisturbed.sums() and self.sound

    def sums(self) -> dict[str, tuple[int, int | None]]:
        """Evaluations, and tokens where they can be compared between races."""
        return {
            method: (charge.evaluations, charge.tokens if method in STEADY else None)
            for method, charge in self.charged.items()
        }

    @property
    def sound(self) -> bool:
        return all(charge.sound for charge in self.charged.values())


class Race:
    """A race in a folder of its own, run by `derby run` in a process of its own."""

    def __init__(self, folder: Path, methods: str) -> None:
        self.card, self.runs = folder / "survival.toml", folder / "runs"
        self.card.write_text(CARD.format(methods=methods), encoding="utf-8")
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

    def charged(self) -> dict[str, Charge]:
        """By method, from the ledgers."""
        return {trial.method: self._charge(trial) for trial in self.progress()}

    def _charge(self, trial: Progress) -> Charge:
        path = next((self.runs / "survival" / "trials").glob(f"{trial.method}-*")) / "ledger.jsonl"
        events = [entry.event for entry in read(path)]
        verdicts = [event for event in events if isinstance(event, Evaluated)]
        return Charge(
            evaluations=trial.spent.evaluations,
            tokens=trial.spent.usage.total,
            recorded=sum(event.usage.total for event in events if isinstance(event, ModelCalled)),
            unconfirmed=trial.spent.unconfirmed_tokens,
            verdicts=len(verdicts),
            candidates=len({event.candidate.id for event in verdicts}),
            champions=sum(isinstance(event, ChampionMeasured) for event in events),
        )

    def kill(self, wanted: Victim) -> int:
        """SIGKILL the first process of the race that is wanted; returns how many were killed."""
        for process in self._seen.values():
            if process.is_running() and wanted(process):
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


def depth(process: psutil.Process, words: str) -> int:
    """How many processes above it have the words in their command line; -1 if it has not itself."""
    if words not in command_line(process):
        return -1
    try:
        return sum(words in command_line(parent) for parent in process.parents())
    except psutil.NoSuchProcess:
        return -1


def innermost(process: psutil.Process, words: str) -> bool:
    """Whether it has the words in its command line and none of its children has."""
    try:
        return words in command_line(process) and not any(words in command_line(one) for one in process.children())
    except psutil.NoSuchProcess:
        return False


def home(process: psutil.Process) -> str:
    """Its home folder: a method's is the scratch folder of its trial."""
    try:
        return str(process.environ().get("HOME", ""))
    except psutil.Error:
        return ""


def race(victim: str, folder: Path, methods: str) -> Outcome:
    """Run a race, kill the victim (if it is one) in the middle, run it again until it is finished."""
    one = Race(folder, methods)
    wanted = CARDS[methods].get(victim)
    killed = runs = 0
    finished = False
    while runs < 4 and not finished:
        driver = one.start()
        runs += 1
        if wanted is not None and killed == 0:
            one.watch(driver, lambda: any(trial.spent.evaluations >= 1 for trial in one.progress()))
            deadline = time.monotonic() + PATIENCE_S
            while killed == 0 and driver.poll() is None and time.monotonic() < deadline:
                one.note(driver.pid)
                killed = one.kill(wanted)
        one.watch(driver, lambda: False)
        trials = one.progress()
        finished = bool(trials) and all(trial.state is State.FINISHED for trial in trials)
    return Outcome(victim, killed, runs, one.charged(), finished, one.left())


def told(methods: str, folder: Path) -> Iterator[tuple[str, bool, Outcome]]:
    """The undisturbed race of these methods and one for each victim: its line, whether it survived, how it ended."""
    undisturbed: Outcome | None = None
    for victim in ["nobody", *CARDS[methods]]:
        outcome = race(victim, Path(tempfile.mkdtemp(dir=folder)), methods)
        undisturbed = undisturbed or outcome
        alive = outcome.survived(undisturbed) and (victim == "nobody" or outcome.killed == 1)
        charged = ", ".join(
            f"{method}: {one.evaluations} evaluations, {one.tokens} tokens (+{one.unconfirmed} lost)"
            for method, one in outcome.charged.items()
        )
        verdict, left = "survived" if alive else "FAILED", f"{len(outcome.left)} processes left"
        yield f"{victim:16} {verdict:8} killed {outcome.killed}, runs {outcome.runs}; {charged}; {left}", alive, outcome


def main() -> None:
    """One undisturbed race of each card, then one for each victim; exit code 1 if one did not survive."""
    lines: list[str] = []
    numbers: dict[str, JsonValue] = {}
    survived = True
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        for methods in CARDS:
            for line, alive, outcome in told(methods, Path(name)):
                survived &= alive
                lines.append(line)
                numbers[f"{methods} {outcome.victim}"] = {"survived": alive, **dataclasses.asdict(outcome)}
                print(line, file=sys.stderr, flush=True)
    keep("survival", lines, numbers)
    sys.exit(0 if survived else 1)


if __name__ == "__main__":
    main()
