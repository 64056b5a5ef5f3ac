"""A trial ends with its champion whatever the method does, and goes on as if nothing had happened after any death."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from suite import confine, environment
from suite.errors import LedgerError, MethodError, ModelError
from suite.events import (
    ChampionMeasured,
    Evaluated,
    Event,
    MethodEnded,
    ModelCalled,
    TrialFinished,
    TrialResumed,
    TrialStarted,
    TrialSuspended,
)
from suite.ledger import read
from suite.score import score
from suite.scripted import DEVICE, ScriptedEvaluator, ScriptedModel
from suite.trial import TrialOrder, run_trial
from suite.types import Budget, Evaluation, Job, Split, Tier, Usage
from tests.suite.racer import race
from tests.suite.stage import HELDOUT, STARTER, candidate, order
from tests.suite.test_ledger import Broken, Notebook
from tests.suite.test_workbench import Recording


def run(trial: TrialOrder, evaluator: ScriptedEvaluator | None = None, model: object = None) -> str:
    asked = model or ScriptedModel(["// a reply"])
    return run_trial(trial, evaluator or ScriptedEvaluator(), asked, threading.Event())  # type: ignore[arg-type]


def events(trial: TrialOrder | Path) -> list[Event]:
    folder = trial if isinstance(trial, Path) else trial.folder
    return [entry.event for entry in read(folder / "ledger.jsonl")]


def last(trial: TrialOrder) -> TrialFinished:
    event = events(trial)[-1]
    assert isinstance(event, TrialFinished)
    return event


def method_end(trial: TrialOrder) -> MethodEnded:
    return [event for event in events(trial) if isinstance(event, MethodEnded)][-1]


@dataclass(frozen=True)
class Totals:
    """What must not depend on how often a trial was interrupted."""

    verdicts: tuple[tuple[int, str, float], ...]
    calls: int
    usage: Usage
    evaluations: int
    free: int
    champion: str | None
    reason: str

    @classmethod
    def of(cls, folder: Path) -> Totals:
        lines = events(folder)
        end = lines[-1]
        assert isinstance(end, TrialFinished)
        assert sum(isinstance(line, TrialStarted) for line in lines) == 1
        assert sum(isinstance(line, ChampionMeasured) for line in lines) == 1
        assert len({line.request for line in lines if isinstance(line, ModelCalled)}) == end.spent.calls
        judged = [line for line in lines if isinstance(line, Evaluated)]
        verdicts = tuple((line.number, line.candidate.id, score(line.evaluation).value) for line in judged)
        spent = end.spent
        return cls(verdicts, spent.calls, spent.usage, spent.evaluations, spent.free, end.champion, end.reason)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a trial of a method that nothing happened to."""
    folders: dict[str, Path] = {}

    def folder(method: str) -> Path:
        if method not in folders:
            folders[method] = tmp_path_factory.mktemp(method)
            assert race(folders[method], method) == "finished"
        return folders[method]

    return folder


# ---------------------------------------------------------------------------------------------- endings


def test_a_trial_runs_from_its_starter_to_its_champion(tmp_path: Path) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=4))
    assert run(trial) == "finished"
    lines = events(trial)
    assert [line.kind for line in lines] == [
        "trial_started", *["evaluated"] * 5, "method_ended", "champion_measured", "trial_finished",
    ]  # fmt: skip
    started, champion = lines[0], lines[-2]
    assert isinstance(started, TrialStarted) and isinstance(champion, ChampionMeasured)
    assert started.trial == trial.spec and started.environment["python"]
    assert champion.heldout == HELDOUT and champion.evaluation.tier == Tier.CHAMPION
    assert score(champion.evaluation, Split.HELDOUT).value > 0
    judged = [line for line in lines if isinstance(line, Evaluated)]
    best = max(judged, key=lambda line: score(line.evaluation).value)
    assert last(trial).champion == best.candidate.id == champion.candidate
    assert last(trial).reason == "budget of evaluations spent" and last(trial).spent.evaluations == 4
    assert method_end(trial).exit_code == 0


def test_a_finished_trial_is_left_alone(tmp_path: Path) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=1))
    run(trial)
    before = (tmp_path / "ledger.jsonl").read_bytes()
    assert run(trial, ScriptedEvaluator(lost=frozenset(range(99)))) == "finished"
    assert (tmp_path / "ledger.jsonl").read_bytes() == before


def test_a_method_that_ends_of_itself_leaves_the_rest_unspent(tmp_path: Path) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=9), steps=2)
    run(trial)
    assert last(trial).reason == "method ended" and last(trial).spent.evaluations == 2


def test_the_starter_is_the_champion_if_nothing_beats_it(tmp_path: Path) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=1), steps=0)
    run(trial)
    assert last(trial).champion == STARTER.id


def test_a_failing_method_still_gets_its_champion_measured(tmp_path: Path) -> None:
    trial = order(tmp_path, "Failing")
    assert run(trial) == "finished"
    assert last(trial).reason == "method failed" and last(trial).champion == candidate("// scripted: 3.0").id
    assert method_end(trial).exit_code == 1 and "the method's own mistake" in method_end(trial).log


@pytest.mark.slow
def test_a_method_that_keeps_dying_has_failed(tmp_path: Path) -> None:
    trial = order(tmp_path, "Suicidal")
    assert run(trial) == "finished"
    ends = [line.reason for line in events(trial) if isinstance(line, MethodEnded)]
    assert ends == ["killed", "killed", "method failed"]
    assert last(trial).spent.evaluations == 1


@pytest.mark.slow
def test_a_method_that_does_not_hear_is_ended(tmp_path: Path) -> None:
    trial = order(tmp_path, "Deaf", Budget(evaluations=2))
    assert run(trial) == "finished"
    assert last(trial).reason == "budget of evaluations spent" and method_end(trial).exit_code != 0


@pytest.mark.slow
def test_spent_time_ends_a_method_that_asks_for_nothing(tmp_path: Path) -> None:
    trial = order(tmp_path, "Idle", Budget(wall_s=0.1))
    assert run(trial) == "finished"
    assert last(trial).reason == "budget of time spent" and last(trial).spent.wall_s == 0.1


@pytest.mark.slow
def test_twenty_repeats_end_the_trial(tmp_path: Path) -> None:
    trial = order(tmp_path, "Loop", Budget(evaluations=9))
    run(trial)
    assert last(trial).reason == "20 repeated candidates in a row"
    assert (last(trial).spent.evaluations, last(trial).spent.free) == (1, 20)


def test_tokens_are_never_overrun_by_a_parallel_method(tmp_path: Path) -> None:
    trial = order(tmp_path, "Talker", Budget(tokens=20_000), concurrency=3, threads=3)
    run(trial, model=Recording(usage=Usage(input=100, output=900)))
    assert last(trial).reason == "budget of tokens spent"
    assert 15_000 < last(trial).spent.usage.total <= 20_000


# ---------------------------------------------------------------------------------------------- suspensions


def test_a_starter_that_does_not_pass_suspends_the_trial(tmp_path: Path) -> None:
    trial = order(tmp_path).model_copy(update={"starter": candidate("// scripted: INCORRECT_NUMERICAL")})
    assert run(trial) == "suspended"
    end = events(trial)[-1]
    assert isinstance(end, TrialSuspended) and "starter does not pass: INCORRECT_NUMERICAL" in end.reason
    assert run(trial) == "suspended"  # and is judged again: the failure may have been the machine's
    assert sum(isinstance(line, Evaluated) for line in events(trial)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 3, 8])
def test_our_failures_suspend_the_trial_wherever_they_happen(tmp_path: Path, first: int) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=6))
    assert run(trial, ScriptedEvaluator(lost=frozenset(range(first, first + 3)))) == "suspended"
    end = events(trial)[-1]
    assert isinstance(end, TrialSuspended) and "3 failures of ours in a row" in end.reason
    assert run(trial) == "finished"
    assert last(trial).spent.evaluations == 6 and last(trial).spent.refunds == 3


def test_a_model_out_of_reach_suspends_the_trial(tmp_path: Path) -> None:
    trial = order(tmp_path, "Talker")
    assert run(trial, model=Recording([ModelError("no key", "a key", "set it")])) == "suspended"
    end = events(trial)[-1]
    assert isinstance(end, TrialSuspended) and end.reason == "no key\n  expected: a key\n  do: set it"
    assert method_end(trial).reason == "suspended"
    assert run(trial) == "finished"


class Stopping(ScriptedEvaluator):
    """Has the user ask for a stop while a certain verdict is made."""

    def __init__(self, stop: threading.Event, at: int) -> None:
        super().__init__()
        self._stop_event, self._left = stop, at

    def evaluate(self, job: Job) -> Evaluation:
        self._left -= 1
        if self._left == 0:
            self._stop_event.set()
        return super().evaluate(job)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 4, 8])
def test_a_stop_keeps_the_work_under_way_and_the_trial_goes_on_later(
    tmp_path: Path, at: int, undisturbed: Callable[[str], Path]
) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=6, tokens=1_000_000))
    stop = threading.Event()
    outcome = run_trial(trial, Stopping(stop, at), None, stop)
    assert outcome == ("finished" if at == 8 else "suspended")
    if at < 8:
        end = events(trial)[-1]
        assert isinstance(end, TrialSuspended) and end.reason == "stopped by the user"
        assert sum(isinstance(line, Evaluated) for line in events(trial)) == at
    assert run(trial) == "finished"
    assert Totals.of(tmp_path) == Totals.of(undisturbed("Walker"))


@pytest.mark.slow
def test_an_error_of_the_suite_is_raised_and_the_trial_goes_on_later(tmp_path: Path) -> None:
    class Bug(ScriptedEvaluator):
        def evaluate(self, job: Job) -> Evaluation:
            if job.candidate != STARTER:
                raise ZeroDivisionError
            return super().evaluate(job)

    trial = order(tmp_path, "Walker", Budget(evaluations=2))
    with pytest.raises(ZeroDivisionError):
        run(trial, Bug())
    assert run(trial) == "finished" and last(trial).spent.evaluations == 2


def test_a_method_that_needs_a_model_is_not_started_without_one(tmp_path: Path) -> None:
    trial = order(tmp_path, "Talker")
    method = trial.spec.method.model_copy(update={"uses_model": True})
    trial = trial.model_copy(update={"spec": trial.spec.model_copy(update={"method": method})})
    with pytest.raises(MethodError, match="asks a model"):
        run_trial(trial, ScriptedEvaluator(), None, threading.Event())
    assert not (tmp_path / "ledger.jsonl").exists()


def test_another_trials_ledger_is_refused(tmp_path: Path) -> None:
    trial = order(tmp_path, "Walker", Budget(evaluations=1))
    run(trial, ScriptedEvaluator(lost=frozenset({1, 2, 3})))
    with pytest.raises(LedgerError, match="belongs to another trial"):
        run(order(tmp_path, "Walker", Budget(evaluations=2)))
    with pytest.raises(LedgerError, match="another held-out seed"):
        run(trial.model_copy(update={"heldout_commitment": "e" * 64}))


def test_failing_views_change_nothing(tmp_path: Path) -> None:
    trial, notebook = order(tmp_path, "Walker", Budget(evaluations=2)), Notebook()
    assert run_trial(trial, ScriptedEvaluator(), None, threading.Event(), [Broken(), notebook]) == "finished"
    assert [line[2] for line in notebook.lines] == [line.kind for line in events(trial)]


# ---------------------------------------------------------------------------------------------- death


def resumed(whole: Path, folder: Path, lines: int) -> Totals:
    """What becomes of a trial that died when its ledger had so many lines (and was writing the next)."""
    data = (whole / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    method = "Talker" if b'"talker"' in data[0] else "Walker"
    folder.mkdir()
    (folder / "ledger.jsonl").write_bytes(b"".join(data[:lines]) + data[lines][:40])
    assert race(folder, method) == "finished"
    return Totals.of(folder)


@pytest.mark.parametrize("lines", [0, 1, 4, 8, 9])
def test_a_trial_that_died_anywhere_ends_with_the_same_totals(
    tmp_path: Path, lines: int, undisturbed: Callable[[str], Path]
) -> None:
    whole = undisturbed("Walker")
    assert resumed(whole, tmp_path / "again", lines) == Totals.of(whole)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["Walker", "Talker"])
def test_a_trial_that_died_at_any_line_ends_with_the_same_totals(
    tmp_path: Path, method: str, undisturbed: Callable[[str], Path]
) -> None:
    whole = undisturbed(method)
    for lines in range(len(events(whole))):
        assert resumed(whole, tmp_path / str(lines), lines) == Totals.of(whole)


def lines_of(folder: Path) -> int:
    path = folder / "ledger.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_at(folder: Path, method: str, lines: Sequence[int]) -> None:
    """Run the trial again and again, each time killing its process when the ledger has so many more lines."""
    for more in lines:
        goal = lines_of(folder) + more
        with subprocess.Popen([sys.executable, "-m", "tests.suite.racer", str(folder), method, "0.03"]) as process:
            while process.poll() is None and lines_of(folder) < goal:
                time.sleep(0.005)
            process.kill()
    assert race(folder, method) == "finished"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["Walker", "Talker"])
def test_a_trial_killed_at_random_again_and_again_ends_with_the_same_totals(
    tmp_path: Path, method: str, undisturbed: Callable[[str], Path]
) -> None:
    dice = random.Random(method)
    killed_at(tmp_path, method, [dice.randint(1, 5) for _ in range(6)])
    assert Totals.of(tmp_path) == Totals.of(undisturbed(method))
    resumptions = sum(isinstance(line, TrialResumed) for line in events(tmp_path))
    assert resumptions >= 2


def hosts() -> list[psutil.Process]:
    """This process's children that hold a method, keepers first."""
    return [child for child in psutil.Process().children(recursive=True) if "suite.host" in child.cmdline()]


@pytest.mark.slow
@pytest.mark.parametrize("member", [0, 1])
def test_killing_only_the_methods_process_changes_nothing(
    tmp_path: Path, member: int, undisturbed: Callable[[str], Path]
) -> None:
    outcome: list[str] = []
    thread = threading.Thread(target=lambda: outcome.append(race(tmp_path, "Walker", 0.2)))
    thread.start()
    for goal in (3, 6):
        while lines_of(tmp_path) < goal:
            time.sleep(0.02)
        hosts()[member].kill()
    thread.join()
    assert outcome == ["finished"]
    ends = [line.reason for line in events(tmp_path) if isinstance(line, MethodEnded)]
    assert ends == ["killed", "killed", "budget of evaluations spent"]
    assert Totals.of(tmp_path) == Totals.of(undisturbed("Walker"))
    assert hosts() == []


# ---------------------------------------------------------------------------------------------- circumstances


def test_the_circumstances_are_in_words_and_say_how_methods_are_fenced() -> None:
    found = environment.describe()
    assert all(isinstance(key, str) and isinstance(value, str) and value for key, value in found.items())
    assert {"python", "platform", "cpu", "cores", "kernel", "revision", "package pydantic"} <= set(found)
    assert found["method_fence"] == confine.profile()
    assert environment.toolchain().items() <= found.items()


def test_describing_the_machine_loads_nothing_heavy() -> None:
    code = "import sys; from suite import environment as e; e.describe(); print({'torch', 'mlflow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_a_missing_compiler_is_simply_not_listed() -> None:
    assert environment.compiler("no-such-compiler") is None


def test_scripted_verdicts_are_deterministic_and_recognisable() -> None:
    job = Job(task=order(Path()).task, candidate=candidate("// x"), tier=Tier.SEARCH)
    assert ScriptedEvaluator().evaluate(job) == ScriptedEvaluator().evaluate(job)
    assert ScriptedEvaluator().evaluate(job).device == DEVICE == "scripted"
