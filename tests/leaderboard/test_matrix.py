"""A matrix compares what may be compared, takes its numbers from the standings, and links to every trial."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard import matrix_html
from leaderboard.matrix import Matrix, matrices, sorted_by
from leaderboard.reading import load
from leaderboard.standings import Partition, Table, standings
from suite.types import Budget, Status
from tests.leaderboard import canned
from tests.leaderboard.canned import LLM, TASK, Plan
from tests.leaderboard.course import SECOND, course


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for plan in course(3):
        canned.write(folder, plan)
    return folder


@pytest.fixture(scope="module")
def matrix(runs: Path) -> Matrix:
    (found,) = matrices(standings(load(runs)))
    return found


def of(runs: Path, *plans: Plan) -> Matrix:
    for plan in plans:
        canned.write(runs, plan)
    (found,) = matrices(standings(load(runs)))
    return found


def html(matrix: Matrix, runs: Path) -> str:
    seeds = {trial.id: trial.spec.seed for trial in load(runs)}
    return matrix_html.render(matrix, matrix.lines, {}, seeds)


def test_cells_are_the_rows_of_the_standings(matrix: Matrix, runs: Path) -> None:
    tables = {table.partition.task: table for table in standings(load(runs))}
    for line in matrix.lines:
        rows = {row.name: row for row in tables[line.label].rows if row.kind == "method"}
        assert [cell for cell in line.cells if cell] == [
            rows[column.name] for column in matrix.columns if column.name in rows
        ]


def test_a_mean_over_tasks_needs_every_task(matrix: Matrix) -> None:
    by_name = {column.label: column for column in matrix.columns}
    assert by_name["avo"].overall is None and by_name["avo"].missing == 1
    cells = [line.cells[matrix.columns.index(by_name["ksearch"])] for line in matrix.lines]
    values = [cell.heldout.value for cell in cells if cell and cell.heldout]
    overall = by_name["ksearch"].overall
    assert overall is not None and len(values) == 2
    assert overall.value == pytest.approx(math.sqrt(values[0] * values[1]))
    assert overall.low is not None and overall.high is not None and overall.low < overall.value < overall.high


def test_the_best_overall_stands_first_and_the_incomplete_last(matrix: Matrix) -> None:
    values = [column.overall.value for column in matrix.columns if column.overall]
    assert values == sorted(values, reverse=True)
    assert matrix.columns[-1].label == "avo"


def test_a_failed_champion_makes_the_mean_zero(tmp_path: Path) -> None:
    found = of(tmp_path, Plan(champion=1.5), Plan(task=SECOND, champion=Status.TIMEOUT))
    (column,) = found.columns
    assert column.overall is not None and column.overall.value == 0
    assert 'class="failed"' in html(found, tmp_path)


def test_an_unfinished_cell_is_a_gap_and_not_a_zero(tmp_path: Path) -> None:
    found = of(tmp_path, Plan(), Plan(task=SECOND, finished=False))
    assert found.columns[0].overall is None
    assert "not finished" in html(found, tmp_path)


def test_one_seed_gives_a_preliminary_mean_without_an_interval(tmp_path: Path) -> None:
    (column,) = of(tmp_path, Plan(), Plan(task=SECOND)).columns
    assert column.overall is not None and column.overall.low is None
    assert column.marks == ("preliminary", "no LLM")


@pytest.mark.parametrize(
    "change",
    [
        {"edition": "2026.12"},
        {"lane": "sm90"},
        {"device": "another"},
        {"language": "python"},
        {"starter": "expert"},
        {"model": LLM},
        {"budget": Budget(evaluations=17)},
        {"concurrency": 2},
        {"timing_protocol": "cpu-2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_conditions_are_another_matrix(change: dict[str, object]) -> None:
    first = Partition.of(canned.trial_spec(Plan()))
    second = Partition.of(canned.trial_spec(Plan(task=SECOND)).model_copy(update=change))
    assert len(matrices([Table(first, ()), Table(second, ())])) == 2


def test_a_changed_task_is_a_line_of_its_own(tmp_path: Path) -> None:
    found = of(tmp_path, Plan(seed=1), Plan(seed=2, task_digest="b" * 64), Plan(seed=3, task=SECOND))
    assert {line.label for line in found.lines} == {f"{TASK} · task {'a' * 8}", f"{TASK} · task {'b' * 8}", SECOND}


def test_options_tell_methods_of_one_name_apart(tmp_path: Path) -> None:
    found = of(tmp_path, Plan("tpe", options={"startup": 4}), Plan("tpe", options={"startup": 8}))
    assert {column.label for column in found.columns} == {"tpe (startup 4)", "tpe (startup 8)"}


def test_lines_can_be_sorted_by_any_column_what_is_missing_last(matrix: Matrix) -> None:
    assert [line.label for line in sorted_by(matrix, None)] == [TASK, SECOND]
    assert [line.label for line in sorted_by(matrix, "avo")] == [TASK, SECOND]
    for place, column in enumerate(matrix.columns):
        cells = [line.cells[place] for line in sorted_by(matrix, column.label)]
        values = [cell.heldout.value for cell in cells if cell and cell.heldout]
        assert values == sorted(values, reverse=True)


def test_every_trial_has_a_link_and_every_number_its_interval(matrix: Matrix, runs: Path) -> None:
    page = html(matrix, runs)
    links = set(re.findall(r'href="trial\?trial=([^"]+)"', page))
    assert links == {trial.id for trial in load(runs)}
    assert page.count("seeds <a") == 7
    for line in matrix.lines:
        for cell in line.cells:
            if cell and cell.heldout and cell.heldout.low:
                assert f"{cell.heldout.low:.3g}" in page or f"{cell.heldout.low:.2f}" in page


def test_faster_and_slower_have_their_own_colours_and_grow_with_distance(matrix: Matrix, runs: Path) -> None:
    page = html(matrix, runs)
    painted = re.findall(r"background:rgba\((\d+),\d+,\d+,([\d.]+)\)\"><b>([\d.]+)</b>", page)
    assert len(painted) == 7 + 3
    for red, _, value in painted:
        assert (red == "0") == (float(value) > 1)
    slower = sorted((float(value), float(strength)) for red, strength, value in painted if red != "0")
    assert [strength for _, strength in slower] == sorted((strength for _, strength in slower), reverse=True)


def test_names_of_strangers_stay_text(matrix: Matrix) -> None:
    line = replace(matrix.lines[0], label="<script>alert(1)</script>")
    page = matrix_html.render(matrix, [line], {}, {})
    assert "<script>" not in page and "&lt;script&gt;" in page
