"""A task folder is loaded strictly, its digest covers what decides a result, and its files become candidates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite.errors import TaskError, UserError
from suite.task import baseline, draw_heldout, from_files, lanes, load, module, starter
from suite.types import Language, Split, StarterKind
from tests.suite.task_folder import edit, write

TRITON_LANE = """
[lane.sm90]
languages = ["triton"]
timeout_s = 1.0
search = [{ params = { rows = 65536 } }]
heldout = { count = 1, draws = { rows = { choice = [9, 10] } } }
starters = { triton = { plain = ["kernel.py"] } }
baseline = { name = "x", version = 1, language = "triton", files = ["kernel.py"], entry_point = "kernel.py::run" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path)


# ---------------------------------------------------------------------------------------------- loading


def test_a_folder_becomes_a_task(folder: Path) -> None:
    task = load(folder)
    assert (task.name, task.lane, task.languages) == ("addition", "cpu", (Language.CPP, Language.PYTHON))
    assert [workload.axes for workload in task.split(Split.SEARCH)] == [{"rows": 2048}, {"rows": 3001}]
    assert [workload.axes for workload in task.split(Split.CHECK)] == [{"rows": 1}, {"rows": 7}]
    assert task.definition.reference == (folder / "reference.py").read_text()
    assert task.definition.inputs["alpha"].shape is None, "an argument without a shape is a scalar"


def test_loading_needs_no_torch(folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from suite.task import draw_heldout, load, starter
task = load(Path({str(folder)!r}))
draw_heldout(task, b"seed"), starter(task, "cpp")
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("name", ["task.toml", "reference.py", "inputs.py", "shapes.py", "kernel.cpp"])
def test_a_missing_piece_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(TaskError) as caught:
        load(folder)
    assert name in caught.value.came
    assert caught.value.expected and caught.value.todo


@pytest.mark.parametrize(
    ("old", "new", "came", "todo"),
    [
        ("timeout_s", "timeout", "unknown key lane.cpu.timeout", "did you mean 'timeout_s'?"),
        ("licence", "license", "unknown key license", "did you mean 'licence'?"),
        ("rtol = 1e-4", "rtoll = 1e-4", "unknown key tolerance.out.rtoll", "did you mean 'rtol'?"),
        ("[tolerance]\nout", "[tolerance]\nuot", "tolerance for uot, total", "correct the table [tolerance]"),
        ('name = "addition"', 'name = "sum"', "definition.name = 'sum'", "call one like the other"),
        ("rows = 3001", "rows = 2048", '{"rows": 2048} twice', "remove one of the two"),
        ("rows = 3001", "rwos = 3001", 'params {"rwos": 3001}', "correct them in task.toml"),
        ("uniform_int = [2500, 2600]", "uniform_int = [3, 2]", "held-out draw", "correct it in task.toml"),
        ("uniform_int = [2500, 2600]", "gauss = [3, 2]", "held-out draw", "correct it in task.toml"),
        ('shape = ["rows", "width"]', 'shape = ["rows", "depth"]', "definition", "correct definition"),
        ('licence = "Apache-2.0"', "", "licence is missing", "add it"),
    ],
)
def test_a_flaw_is_told_in_three_parts(folder: Path, old: str, new: str, came: str, todo: str) -> None:
    edit(folder / "task.toml", old, new)
    with pytest.raises(TaskError) as caught:
        load(folder)
    assert came in caught.value.came
    assert caught.value.expected
    assert todo in caught.value.todo


def test_shapes_that_do_not_run_or_lack_an_axis_are_told(folder: Path) -> None:
    edit(folder / "shapes.py", '{"rows": params["rows"]}', '{"lines": params["rows"]}')
    with pytest.raises(TaskError, match="exactly \\['rows'\\]"):
        load(folder)
    (folder / "shapes.py").write_text("def axes(:")
    with pytest.raises(TaskError, match=r"shapes\.py does not run"):
        load(folder)


def test_an_absent_lane_is_refused_with_the_present_ones(folder: Path) -> None:
    with pytest.raises(TaskError, match=r"no lane 'sm90'\n  expected: one of its lanes: cpu"):
        load(folder, "sm90")


def test_lanes_have_timed_shapes_of_their_own(folder: Path) -> None:
    before = load(folder).digest
    (folder / "kernel.py").write_text("import triton\ndef run(x, y, alpha, out, total): ...\n")
    (folder / "task.toml").write_text((folder / "task.toml").read_text() + TRITON_LANE)
    cpu, gpu = load(folder), load(folder, "sm90")
    assert lanes(folder) == ("cpu", "sm90")
    assert cpu.split(Split.CHECK) == gpu.split(Split.CHECK)
    assert [workload.axes["rows"] for workload in gpu.split(Split.SEARCH)] == [65536]
    assert cpu.digest == before, "a new lane changes no other"
    assert gpu.digest != cpu.digest
    assert from_files(gpu, [folder / "kernel.py"]).spec.language == Language.TRITON


# ---------------------------------------------------------------------------------------------- the digest


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("task.toml", "rtol = 1e-4", "rtol = 2e-4"),
        ("task.toml", "rows = 7", "rows = 8"),
        ("task.toml", "rows = 3001", "rows = 3002"),
        ("task.toml", "2600", "2601"),
        ("task.toml", "version = 1", "version = 2"),
        ("reference.py", "...", "pass"),
        ("inputs.py", "normal", "uniform"),
        ("shapes.py", "draw[", "draw ["),
        ("kernel.cpp", "int run", "int  run"),
    ],
)
def test_the_digest_changes_with_what_decides_a_result(folder: Path, name: str, old: str, new: str) -> None:
    before = load(folder).digest
    edit(folder / name, old, new)
    assert load(folder).digest != before


def test_the_digest_ignores_brief_starters_and_place(folder: Path, tmp_path: Path) -> None:
    before = load(write(tmp_path / "elsewhere")).digest
    (folder / "plain.cpp").write_text("// another starter")
    edit(folder / "task.toml", 'plain = ["kernel.cpp"]', 'plain = ["plain.cpp"]')
    edit(folder / "task.toml", "timeout_s = 2.0", 'timeout_s = 2.0\nhints = "- Think."')
    edit(folder / "task.toml", 'title = "Scaled', 'title = "A scaled')
    task = load(folder)
    assert (task.hints, task.digest) == ("- Think.", before)


def test_a_workload_is_the_same_one_wherever_it_appears(folder: Path, tmp_path: Path) -> None:
    other = load(write(tmp_path / "elsewhere"))
    assert [one.uuid for one in load(folder).workloads] == [one.uuid for one in other.workloads]


def test_a_module_is_executed_anew_when_its_text_changes(folder: Path) -> None:
    task = load(folder)
    assert module(task, "shapes") is module(task, "shapes")
    (folder / "shapes.py").write_text('"""Another."""\nNEW = 1\n')
    assert module(task, "shapes").NEW == 1


# ---------------------------------------------------------------------------------------------- held-out workloads


def test_held_out_workloads_follow_from_the_seed_and_are_new(folder: Path) -> None:
    edit(folder / "task.toml", "count = 1", "count = 20")
    task = load(folder)
    drawn = draw_heldout(task, b"secret")
    assert drawn == draw_heldout(task, b"secret")
    assert drawn != draw_heldout(task, b"another")
    assert len({one.uuid for one in (*drawn, *task.workloads)}) == 20 + len(task.workloads)
    assert {one.split for one in drawn} == {Split.HELDOUT}


def test_draws_stay_within_their_bounds_and_reach_them(folder: Path) -> None:
    edit(folder / "shapes.py", 'return {"rows": draw["rows"]}', "return dict(draw)")
    edit(folder / "shapes.py", 'return {"rows": params["rows"]}', 'return {"rows": params.get("a", 1)}')
    edit(folder / "task.toml", "count = 1", "count = 60")
    edit(
        folder / "task.toml",
        "rows = { uniform_int = [2500, 2600] }",
        'a = { uniform_int = [1, 4] }\nb = { log_uniform_int = [1, 16] }\nc = { choice = ["x", "y"] }',
    )
    for old, new in (("rows = 7", "a = 7"), ("rows = 2048", "a = 8"), ("rows = 3001", "a = 9"), ("rows = 1", "a = 10")):
        edit(folder / "task.toml", old, new)
    drawn = [one.params for one in draw_heldout(load(folder), b"x")]
    assert {one["a"] for one in drawn} == {1, 2, 3, 4}
    assert {one["c"] for one in drawn} == {"x", "y"}
    logarithmic = [int(str(one["b"])) for one in drawn]
    assert min(logarithmic) == 1 and max(logarithmic) <= 16
    assert sum(value <= 4 for value in logarithmic) >= 15, "half of the draws lie below the geometric middle"


def test_a_distribution_too_narrow_is_told(folder: Path) -> None:
    edit(folder / "task.toml", "uniform_int = [2500, 2600]", "choice = [2048, 3001]")
    with pytest.raises(TaskError, match="gave only 0 workloads"):
        draw_heldout(load(folder), b"x")


# ---------------------------------------------------------------------------------------------- candidates


def test_starter_and_baseline_are_candidates(folder: Path) -> None:
    task = load(folder)
    plain = starter(task, Language.CPP)
    assert plain.text() == (folder / "kernel.cpp").read_text()
    assert plain.spec.entry_point == "kernel.cpp::run"
    assert baseline(task).text() == plain.text()


def test_an_absent_starter_is_told_with_the_present_ones(folder: Path) -> None:
    with pytest.raises(TaskError, match=r"no expert starter in cpp\n  expected: one of: cpp-plain"):
        starter(load(folder), Language.CPP, StarterKind.EXPERT)


@pytest.mark.parametrize(
    ("source", "in_place"),
    [
        ("def run(x, y, alpha): ...", False),
        ("def run(x, y, alpha, out, total): ...", True),
        ("def run(x, y): ...", True),
        ("def run(:", True),
        ("x = 1", True),
    ],
)
def test_a_python_kernel_that_takes_only_the_inputs_returns_its_outputs(
    folder: Path, source: str, in_place: bool
) -> None:
    path = folder / "mine.py"
    path.write_text(source)
    candidate = from_files(load(folder), [path])
    assert candidate.spec.language == Language.PYTHON
    assert candidate.spec.destination_passing_style == in_place


def test_the_first_of_several_files_is_the_entry(folder: Path) -> None:
    (folder / "mine.cpp").write_text('#include "mine.h"')
    (folder / "mine.h").write_text("int x;")
    candidate = from_files(load(folder), [folder / "mine.cpp", folder / "mine.h"])
    assert candidate.spec.entry_point == "mine.cpp::run"
    assert candidate.text("mine.h") == "int x;"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.rs", b"", "in no known language"),
        ("mine.cu", b"", "takes cpp, python"),
        ("mine.cpp", None, "can not be read"),
        ("mine.py", b"\xff\xfe", "can not be read"),
    ],
)
def test_a_file_that_can_be_no_candidate_is_told(folder: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        from_files(load(folder), [folder / name])


def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.cpp")
    with pytest.raises(UserError, match="no regular file"):
        from_files(load(folder), [folder / "pipe.cpp"])
