"""What every task folder must do: load, tell right from wrong through the judge, and keep its secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import tasks
from suite import task as loader
from suite.admission import mutants
from suite.brief import brief
from suite.judge.judge import Judge
from suite.judge.plan import TINY, JudgeSettings
from suite.types import Candidate, Evaluation, Job, Language, Split, StarterKind, Status, Task, Tier

TASKS = {name: loader.load(tasks.folder(name)) for name in tasks.names()}
EVERY = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
STARTERS = [(task, key) for task in TASKS.values() for key in task.starters]
MUTANTS = [(task, name) for task in TASKS.values() for name in mutants(task)]


@pytest.fixture(scope="module")
def judge(fresh_cache: Callable[[], Path]) -> Iterator[Judge]:
    with Judge(JudgeSettings(cache=fresh_cache(), search=TINY, champion=TINY)) as judge:
        yield judge


def verdict(judge: Judge, task: Task, candidate: Candidate) -> Evaluation:
    return judge.evaluate(Job(task=task, candidate=candidate, tier=Tier.SEARCH))


@pytest.mark.parametrize("name", tasks.names())
def test_every_lane_loads_and_differs(name: str) -> None:
    lanes = loader.lanes(tasks.folder(name))
    loaded = {lane: loader.load(tasks.folder(name), lane) for lane in lanes}
    assert len({task.digest for task in loaded.values()}) == len(lanes)


@EVERY
def test_origin_and_licence_are_named(task: Task) -> None:
    assert task.origin and task.licence and task.title and task.definition.description


@EVERY
def test_no_two_workloads_are_the_same(task: Task) -> None:
    assert len({workload.uuid for workload in task.workloads}) == len(task.workloads)


@EVERY
def test_inputs_depend_on_the_seed_and_on_nothing_else(task: Task) -> None:
    inputs, workload = loader.module(task, "inputs"), task.split(Split.CHECK)[-1]
    for family in inputs.FAMILIES:
        first, same, other = (
            inputs.make_inputs(workload.params, np.random.default_rng(seed), family) for seed in (1, 1, 2)
        )
        tensors = [name for name, value in first.items() if isinstance(value, torch.Tensor)]
        assert all(torch.equal(first[name], same[name]) for name in tensors)
        assert not all(torch.equal(first[name], other[name]) for name in tensors)


@EVERY
def test_held_out_workloads_are_new_and_in_no_brief(task: Task) -> None:
    drawn = [workload for seed in (b"a", b"b") for workload in loader.draw_heldout(task, seed)]
    known = {workload.uuid for workload in task.workloads}
    searched = [workload.params for workload in task.split(Split.SEARCH)]
    texts = [brief(task, language) for language in task.languages]
    for workload in drawn:
        assert workload.uuid not in known and workload.params not in searched
        assert not any(workload.uuid in text or str(workload.params) in text for text in texts)
    for workload in task.split(Split.CHECK):
        assert not any(workload.uuid in text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "key"), STARTERS, ids=[f"{task.name}-{key}" for task, key in STARTERS])
def test_starters_pass(judge: Judge, task: Task, key: str) -> None:
    language, _, kind = key.partition("-")
    evaluation = verdict(judge, task, loader.starter(task, Language(language), StarterKind(kind)))
    assert evaluation.status == Status.PASSED, evaluation.failure


@EVERY
@pytest.mark.slow
def test_the_baseline_passes(judge: Judge, task: Task) -> None:
    evaluation = verdict(judge, task, loader.baseline(task))
    assert evaluation.status == Status.PASSED, evaluation.failure


SEEKER = """
import gc, os, sys

def _seek(folder, marker):
    for name in {files}:
        try:
            open(os.path.join(folder, name)).close()
            yield "can be opened: " + name
        except OSError:
            pass
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("suite", "tasks", "reference", "inputs", "shapes"):
            yield "is imported: " + name
        if str(getattr(module, "__file__", "")).startswith(folder):
            yield "comes from the task: " + name
    for thing in gc.get_objects():
        if type(thing) is dict:
            for value in list(thing.values()):
                if type(value) is str and marker in value and value is not marker:
                    yield "lies in memory: " + marker
    for name in ("maps", "environ", "cmdline"):
        with open("/proc/self/" + name, errors="replace") as file:
            if folder in file.read():
                yield "is named in /proc/self/" + name

_found = list(_seek({folder!r}[::-1], {marker!r}[::-1]))
if _found:
    raise RuntimeError(str(_found[:50]))
"""
"""Ends a kernel with an error if it finds anything of its task; words stand backwards, lest it find itself."""


@EVERY
@pytest.mark.slow
def test_nothing_of_the_task_is_beside_the_candidate(task: Task, fresh_cache: Callable[[], Path]) -> None:
    if Language.PYTHON not in task.languages:
        pytest.skip("what has no Python can not look around")
    folder, reference = Path(task.folder).resolve(), (Path(task.folder) / "reference.py").read_text()
    files = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    honest = loader.starter(task, Language.PYTHON, StarterKind.PLAIN)
    (source,) = honest.sources
    marker = max(reference.splitlines(), key=len)
    words = SEEKER.format(files=files, folder=str(folder)[::-1], marker=marker[::-1])
    with pytest.raises(RuntimeError, match=r"can be opened.*reference\.py"):  # here, where all of it is in reach
        exec(words, {})
    future = "from __future__ import annotations"
    seeking = source.model_copy(update={"content": f"{future}\n{words}\n{source.content.replace(future, '')}"})
    settings = JudgeSettings(cache=fresh_cache(), search=TINY, champion=TINY, screen=False)
    with Judge(settings) as unscreened:
        evaluation = verdict(unscreened, task, honest.model_copy(update={"sources": (seeking,)}))
    assert evaluation.status == Status.PASSED, evaluation.failure


@EVERY
def test_there_are_mutants(task: Task) -> None:
    assert len(mutants(task)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(("task", "name"), MUTANTS, ids=[f"{task.name}-{name}" for task, name in MUTANTS])
def test_mutants_fail_by_their_numbers(judge: Judge, task: Task, name: str) -> None:
    candidate = mutants(task)[name]
    assert "Wrong: " in candidate.text().splitlines()[0], "the first line says what is wrong"
    assert verdict(judge, task, candidate).status == Status.INCORRECT_NUMERICAL
