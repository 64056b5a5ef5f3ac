"""OpenEvolve: its settings arrive, parents are known, refusals end it, and what dies is started again."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pytest
from openevolve.config import Config, DatabaseConfig, PromptConfig

from methods import resolve
from methods.openevolve import OpenEvolve, evaluation, runner, settings, worker
from suite import tuner
from suite.client import TOKEN
from suite.errors import MethodError
from suite.evaluator import Evaluator
from suite.model import OpenAIModel
from suite.types import Budget, Failure, ModelSpec, Status
from suite.workbench import Feedback, WorkloadFeedback
from tests.conformance.racer import Slow
from tests.methods.course import STARTER, AllFail, Hill, bench, door, order, verdicts

SPEC = resolve("openevolve", {})
PRESETS = {"core": OpenEvolve(), "k_search_paper": OpenEvolve(preset="k_search_paper")}
DEADLINE_S = 60.0


def search(folder: Path, method: OpenEvolve, evaluator: Evaluator | None = None, evaluations: int = 6) -> settings.Home:
    """Let the method search through a real door, with the tuner as its model; returns the folder it works in."""
    trial = order(folder, SPEC, Budget(evaluations=evaluations))
    with tuner.serve() as address:
        model = OpenAIModel(ModelSpec(provider="tuner", name="tuner"), address, "none")
        with bench(trial, evaluator or Hill(), model) as opened, door(opened) as client:
            method.search(client)
    return home(folder)


def home(folder: Path) -> settings.Home:
    return settings.Home(folder / "scratch" / "openevolve")


def trace(folder: Path, name: str = "evolution_trace") -> list[dict[str, Any]]:
    """The lines of the package's own trace, over all attempts."""
    files = sorted(home(folder).folder.glob(f"attempt_*/{name}.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


# ---------------------------------------------------------------------------------------------- settings


def told(method: OpenEvolve, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], Config]:
    """What the package is told, and what it makes of it."""
    monkeypatch.setenv(TOKEN, "secret")
    with bench(order(folder, SPEC, concurrency=2), Hill()) as opened:
        words = settings.config(method, opened)
    return words, Config.from_dict(json.loads(json.dumps(words)))


def dropped(words: dict[str, Any], config: Any) -> list[str]:
    """Keys that the package does not know or did not take over; it says nothing when it drops one."""
    lost = []
    for key, value in words.items():
        if key not in {field.name for field in dataclasses.fields(config)}:
            lost.append(key)
        elif isinstance(value, dict):
            lost += dropped(value, getattr(config, key))
        elif key not in ("api_key", "models") and getattr(config, key) != value:
            lost.append(key)
    return lost


def changed(config: Any, default: Any) -> set[str]:
    names = {field.name for field in dataclasses.fields(default)}
    return {name for name in names if getattr(config, name) != getattr(default, name)}


@pytest.mark.parametrize("method", PRESETS.values(), ids=PRESETS)
def test_no_setting_is_dropped(method: OpenEvolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, config = told(method, tmp_path, monkeypatch)
    assert dropped(words, config) == []
    assert "secret" not in json.dumps(words)
    (model,) = config.llm.models
    assert (model.api_key, model.retries, config.evaluator.max_retries) == ("secret", 0, 0)
    assert config.evaluator.parallel_evaluations == 2
    assert config.early_stopping_patience is None


def test_a_dropped_setting_would_be_noticed() -> None:
    assert dropped({"allow_full_rewrites": True}, Config()) == ["allow_full_rewrites"]


def test_core_is_the_packages_own_but_for_what_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, config = told(OpenEvolve(), tmp_path, monkeypatch)
    ours = {"log_prompts", "max_snapshot_artifacts", "artifacts_base_path"}
    assert changed(config.database, DatabaseConfig()) == ours
    ours = {"system_message", "artifact_security_filter", "suggest_simplification_after_chars"}
    assert changed(config.prompt, PromptConfig()) == ours
    assert config.diff_based_evolution


def test_the_papers_values_are_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, config = told(PRESETS["k_search_paper"], tmp_path, monkeypatch)
    database = config.database
    assert (database.population_size, database.archive_size, database.num_islands) == (25, 12, 3)
    ratios = (database.elite_selection_ratio, database.exploitation_ratio, database.exploration_ratio)
    assert ratios == (0.3, 0.65, 0.35)
    assert not config.diff_based_evolution
    assert config.max_code_length == 90_000


def test_options_go_before_the_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = OpenEvolve(preset="k_search_paper", edits="search_replace", islands=2, population=7)
    _, config = told(method, tmp_path, monkeypatch)
    assert (config.database.num_islands, config.database.population_size) == (2, 7)
    assert config.diff_based_evolution


@pytest.mark.parametrize("options", [{"preset": "stock"}, {"islands": 0}, {"edits": "diff"}, {"population": "25"}])
def test_mistaken_options_are_said(options: dict[str, Any]) -> None:
    with pytest.raises(MethodError, match=next(iter(options))):
        resolve("openevolve", options)


# ---------------------------------------------------------------------------------------------- the package


def test_a_missing_package_is_a_sentence_and_a_present_one_is_not_loaded_early() -> None:
    code = (
        "import sys\nfrom methods import resolve\nfrom suite.errors import MethodError\n"
        "resolve('openevolve', {})\nprint('openevolve' in sys.modules, 'numpy' in sys.modules)\n"
        "sys.modules['openevolve'] = None\ndel sys.modules['methods.openevolve']\n"
        "try: resolve('openevolve', {})\nexcept MethodError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False False\n")
    assert "needs the package 'openevolve'" in done.stdout
    assert "pip install 'kernel-derby[openevolve]'" in done.stdout


def test_another_version_is_not_raced_under_this_ones_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.5.0")
    with bench(order(tmp_path, SPEC), Hill()) as opened, pytest.raises(MethodError, match=r"openevolve 0\.5\.0"):
        OpenEvolve().search(opened)


def test_a_starter_without_room_to_grow_is_said(tmp_path: Path) -> None:
    with bench(order(tmp_path, SPEC), Hill()) as opened, pytest.raises(MethodError, match="max_code_length is 10"):
        OpenEvolve(max_code_length=10).search(opened)


def test_walls_that_leave_no_semaphores_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(multiprocessing, "Lock", refused)
    with bench(order(tmp_path, SPEC), Hill()) as opened, pytest.raises(MethodError, match="need semaphores"):
        OpenEvolve().search(opened)


# ---------------------------------------------------------------------------------------------- the worker's side


def test_artifacts_say_what_may_be_known_of_a_verdict() -> None:
    workload = WorkloadFeedback(
        uuid="u", axes={"n": 8}, speedup=1.5, low=1.4, high=1.6, candidate_us=2.0, baseline_us=3.0
    )
    verdict = Feedback(number=1, candidate="a" * 16, status=Status.PASSED, score=1.5, workloads=(workload,))
    assert evaluation.artifacts(verdict) == {
        "status": "PASSED",
        "workloads": "n = 8: speedup 1.500 (2.0 us against 3.0 us of the baseline)",
    }
    failure = Failure(stage="build", detail="does not compile", workload="check")
    verdict = Feedback(
        number=1, candidate="a" * 16, status=Status.COMPILE_ERROR, score=0, failure=failure, log="x" * 99_999
    )
    shown = evaluation.artifacts(verdict)
    assert shown["failure"] == "build: does not compile (workload check)"
    assert len(shown["compiler"]) == evaluation.LOG_LIMIT


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ("LLM generation failed: Error code: 402 - {'error': {'type': 'budget_exhausted'}}", True),
        ("LLM generation failed: Error code: 503 - {'error': {'type': 'stopped'}}", True),
        ("LLM generation failed: Error code: 500 - {}", True),
        ("LLM generation failed: Connection error.", True),
        ("LLM generation failed: Error code: 413 - a prompt that is too long", False),
        ("LLM generation failed: Error code: 422 - 402", False),
        ("Unmatched SEARCH/REPLACE delimiter: LLM generation failed: Error code: 402", False),
        ("No valid diffs found in response", False),
    ],
)
def test_only_the_gateways_own_refusals_end_the_run(error: str, refused: bool) -> None:
    assert worker.is_refusal(error) == refused


def test_it_gives_up_after_useless_answers_in_a_row_but_not_for_a_dead_worker() -> None:
    class Tracer:
        log_trace = log_failure = lambda self, **record: None

    ends: list[int] = []
    watch = runner.Watch(Tracer(), 3, lambda: ends.append(1))
    for record in [{"evolution_mode": "diff"}, {"evolution_mode": "diff"}, {"error": "the pool is broken"}]:
        watch.log_failure(**record)
    assert not watch.gave_up
    watch.log_trace(iteration=4)
    for _ in range(3):
        watch.log_failure(evolution_mode="diff")
    assert watch.gave_up and ends == [1]


# ---------------------------------------------------------------------------------------------- a search


@pytest.mark.slow
@pytest.mark.parametrize("edits", ["search_replace", "whole"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_candidate_has_a_parent_that_was_judged_before(preset: Any, edits: Any, tmp_path: Path) -> None:
    search(tmp_path, OpenEvolve(preset=preset, edits=edits), evaluations=8)
    known = {STARTER.id}
    parents = set()
    for event in verdicts(tmp_path):
        assert event.parent in known and event.note.startswith("iteration ")
        parents.add(event.parent)
        known.add(event.candidate.id)
    assert len(known) == 9 and len(parents) > 1


@pytest.mark.slow
def test_the_packages_trace_joins_the_ledger_by_content(tmp_path: Path) -> None:
    search(tmp_path, OpenEvolve())
    judged = {event.candidate.text(): event for event in verdicts(tmp_path)}
    lines = {line["child_code"]: line for line in reversed(trace(tmp_path))}  # the first of repeated ones
    assert set(lines) - {STARTER.text()} == set(judged)
    for code, event in judged.items():
        line = lines[code]
        assert event.note.startswith(f"iteration {line['iteration']},")
        parent = judged.get(line["parent_code"])
        assert event.parent == (parent.candidate.id if parent else STARTER.id)


@pytest.mark.slow
def test_a_refused_evaluation_enters_neither_database_nor_trace(tmp_path: Path) -> None:
    where = search(tmp_path, OpenEvolve(), AllFail(), evaluations=3)
    assert "budget of evaluations is spent" in where.refusal.read_text()
    assert len(trace(tmp_path)) == 3
    assert trace(tmp_path, "evolution_trace_failures") == []


# ---------------------------------------------------------------------------------------------- deaths


def runners() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "methods.openevolve.runner" in _words(child)]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def killer(victims: Callable[[], list[psutil.Process]], times: int = 1) -> Iterator[list[int]]:
    """Kills the first victim there is, `times` different ones in all, beside what the block does."""
    killed: list[int] = []
    over = threading.Event()

    def hunt() -> None:
        while len(killed) < times and not over.wait(0.01):
            for victim in [process for process in victims() if process.pid not in killed][:1]:
                victim.kill()
                killed.append(victim.pid)

    thread = threading.Thread(target=hunt)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def after(folder: Path, checkpoint: int, process: Callable[[psutil.Process], list[psutil.Process]]) -> Any:
    """Victims once the first attempt has written that checkpoint."""

    def victims() -> list[psutil.Process]:
        written = (home(folder).attempt(0) / "checkpoints" / f"checkpoint_{checkpoint}").exists()
        return [found for one in runners() for found in process(one)] if written else []

    return victims


VICTIMS: dict[str, Callable[[psutil.Process], list[psutil.Process]]] = {
    "runner": lambda process: [process],
    "worker": lambda process: process.children(),
}


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
def test_what_is_killed_goes_on_from_its_checkpoint_and_costs_no_more_evaluations(victim: str, tmp_path: Path) -> None:
    with killer(after(tmp_path, 2, VICTIMS[victim])) as killed:
        search(tmp_path, OpenEvolve(), Slow(0.3), evaluations=8)
    assert len(killed) == 1
    events = verdicts(tmp_path)
    assert len(events) == len({event.candidate.id for event in events}) == 8
    assert all(event.parent in {STARTER.id, *(one.candidate.id for one in events)} for event in events)
    assert sorted(path.name for path in home(tmp_path).folder.glob("attempt_*")) == ["attempt_0", "attempt_1"]
    assert len(list((home(tmp_path).attempt(1) / "resumed" / "programs").glob("*.json"))) >= 3
    assert {line["iteration"] for line in trace(tmp_path)} <= set(range(1, 20))
    _nobody_left(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
def test_what_dies_again_and_again_is_the_methods_failure(victim: str, tmp_path: Path) -> None:
    def victims() -> list[psutil.Process]:
        return [found for one in runners() for found in VICTIMS[victim](one)]

    with killer(victims, times=9) as killed, pytest.raises(MethodError, match="died 3 times in a row"):
        search(tmp_path, OpenEvolve(), Slow(0.3), evaluations=20)
    assert 3 <= len(killed) < 9
    _nobody_left(tmp_path)


@pytest.mark.slow
def test_workers_die_with_their_runner_even_if_nobody_kills_them(tmp_path: Path) -> None:
    found: list[psutil.Process] = []

    def families(process: psutil.Process) -> list[psutil.Process]:
        found.extend(process.children())
        return [process] if found else []

    with killer(after(tmp_path, 1, families)):
        search(tmp_path, OpenEvolve(), Slow(0.3), evaluations=4)
    assert found
    _nobody_left(tmp_path)
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in found)


def _nobody_left(folder: Path) -> None:
    """Workers have their runner's command line, which names the folder."""
    deadline = time.monotonic() + DEADLINE_S
    while any(str(home(folder).folder) in _words(process) for process in psutil.process_iter()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
