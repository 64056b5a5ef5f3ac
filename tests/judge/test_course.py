"""A task's own Python answers with names, and contradictions are the task's, said in three parts."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
import torch

from suite.errors import TaskError
from suite.judge.arena import InputArena, lay_out
from suite.judge.check import Tally, draw_cases, timed_cases
from suite.judge.course import Course
from suite.judge.memory import Pool, fresh_generator
from suite.judge.sides import set_scene
from suite.task import load
from suite.types import Split, Task
from tests.judge.conftest import FIXTURE


@pytest.fixture(scope="module")
def course(task: Task) -> Course:
    return Course(task)


def test_inputs_come_in_the_definitions_order_and_differ_each_time(course: Course, task: Task) -> None:
    workload = task.split(Split.SEARCH)[0]
    first, second = (course.make(workload, fresh_generator(), "normal") for _ in range(2))
    assert list(first) == ["x", "y", "alpha"]
    assert not torch.equal(torch.as_tensor(first["x"]), torch.as_tensor(second["x"]))


def test_a_refreshed_scene_has_other_contents_at_the_same_addresses(course: Course, task: Task) -> None:
    workload = task.split(Split.SEARCH)[0]
    with InputArena(lay_out(task.definition, workload.axes).input_bytes) as arena:
        scene = set_scene(task.definition, workload, arena, course.make(workload, fresh_generator(), "normal"))
        x = scene.inputs["x"]
        assert isinstance(x, torch.Tensor)
        before, address = x.clone(), x.data_ptr()
        course.refresh(scene.inputs, workload.params, Pool(1 << 20), fresh_generator())
        assert not torch.equal(x, before) and x.data_ptr() == address


def test_a_scene_tells_the_child_layout_scalars_and_axes_in_the_order_of_a_call(course: Course, task: Task) -> None:
    workload = task.split(Split.SEARCH)[0]
    with InputArena(lay_out(task.definition, workload.axes).input_bytes) as arena:
        scene = set_scene(task.definition, workload, arena, course.make(workload, fresh_generator(), "normal"))
    kinds = [(one.name, one.kind) for one in scene.arguments]
    assert kinds == [
        ("x", "input"), ("y", "input"), ("alpha", "scalar"), ("out", "output"), ("total", "output"), ("rows", "axis"),
    ]  # fmt: skip
    assert [one.value for one in scene.arguments if one.kind in ("scalar", "axis")] == [0.5, 6000]


def test_inputs_of_another_shape_than_the_definitions_are_the_tasks_fault(course: Course, task: Task) -> None:
    workload = task.split(Split.SEARCH)[0]
    contents = course.make(workload, fresh_generator(), "normal") | {"y": torch.zeros(3)}
    with InputArena(1 << 24) as arena, pytest.raises(TaskError, match=r"inputs.py made y as torch.float32 \[3\]"):
        set_scene(task.definition, workload, arena, contents)


def test_rows_of_right_outputs_agree_with_the_reference_and_of_wrong_ones_do_not(course: Course, task: Task) -> None:
    inputs = course.make(task.split(Split.CHECK)[1], fresh_generator(), "normal")
    outputs = course.truth(inputs)
    assert course.spot_check(inputs, outputs, fresh_generator()).ok
    outputs["out"] += 1.0
    comparison = course.spot_check(inputs, outputs, fresh_generator())
    assert not comparison.ok and comparison.detail.startswith("out: ")


def test_the_check_split_is_every_shape_with_every_family_drawn_anew(course: Course, task: Task) -> None:
    first, second = (list(draw_cases(course, fresh_generator())) for _ in range(2))
    assert [(case.workload, case.family) for case in first] == [
        (workload, family) for workload in task.split(Split.CHECK) for family in ("normal", "positive")
    ]
    assert all(not torch.equal(a.truth["out"], b.truth["out"]) for a, b in zip(first, second, strict=True))


def test_timed_shapes_are_called_with_the_families_that_are_not_timed(course: Course, task: Task) -> None:
    timed = task.split(Split.SEARCH)
    every = list(timed_cases(course, fresh_generator(), timed, None))
    assert {case.workload.uuid for case in every} == {workload.uuid for workload in timed}
    assert {case.family for case in every} == {"positive"} and len(every) == len(timed)
    drawn = [next(timed_cases(course, fresh_generator(), timed, 1)).workload.uuid for _ in range(30)]
    assert len(set(drawn)) == len(timed)


def test_a_tally_keeps_the_worst_and_counts_both_kinds(course: Course, task: Task) -> None:
    inputs = course.make(task.split(Split.CHECK)[0], fresh_generator(), "normal")
    truth = course.truth(inputs)
    tally = Tally()
    tally.add(course.compare(truth, truth), referenced=True)
    tally.add(course.compare({**truth, "out": truth["out"] + 0.25}, truth), referenced=False)
    result = tally.correctness()
    assert (result.compared, result.referenced) == (1, 1)
    assert result.max_absolute_error == pytest.approx(0.25, rel=1e-3)


def test_a_reference_with_a_missing_output_is_the_tasks_fault(tmp_path: Path) -> None:
    folder = tmp_path / FIXTURE.name
    shutil.copytree(FIXTURE, folder)
    (folder / "reference.py").write_text("def run(x, y, alpha):\n    return alpha * x + y\n")
    course = Course(load(folder))
    with pytest.raises(TaskError, match="returned 1 outputs"):
        list(draw_cases(course, fresh_generator()))


def test_cost_is_what_the_task_says(course: Course, task: Task) -> None:
    cost = course.cost(task.split(Split.CHECK)[0])
    assert dataclasses.astuple(cost) == ((3 * 256 + 1) * 4 + 4, 3 * 256)
