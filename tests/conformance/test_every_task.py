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


@EVERY
def test_there_are_mutants(task: Task) -> None:
    assert len(mutants(task)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(("task", "name"), MUTANTS, ids=[f"{task.name}-{name}" for task, name in MUTANTS])
def test_mutants_fail_by_their_numbers(judge: Judge, task: Task, name: str) -> None:
    candidate = mutants(task)[name]
    assert "Wrong: " in candidate.text().splitlines()[0], "the first line says what is wrong"
    assert verdict(judge, task, candidate).status == Status.INCORRECT_NUMERICAL
