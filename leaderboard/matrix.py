"""Ranked tables -> tasks x methods: one matrix for every set of conditions that its tasks share. Pure.

A cell is a row of a standings table, untouched: its ranked held-out speedup with interval, marks and trials. What may
not be compared never meets in one matrix: lane, device, language, starter, model, budget, concurrency, protocol and
edition are the same in all of it, and a task whose digest or brief has changed is another task, on a line of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.standings import Partition, Row, Table
from suite.score import Estimate, over_tasks
from suite.types import digest_of

OF_A_TASK = ("task", "task_digest", "brief_digest")
"""What tells the tables of one matrix apart."""

CARRIED = ("preliminary", "no LLM", "machine busy", "claimed")
"""Marks that a mean over tasks takes over from any of them."""


@dataclass(frozen=True)
class Line:
    """A task: its table and the row of each method, None where the method has not been run on it."""

    table: Table
    label: str
    cells: tuple[Row | None, ...]


@dataclass(frozen=True)
class Column:
    """A method. `overall`: geometric mean over all tasks, None unless every task has a number; `marks` of any cell."""

    label: str
    name: str
    options: str
    overall: Estimate | None
    missing: int
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """Tasks from top to bottom, methods from left to right, best overall first."""

    id: str
    conditions: Partition
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]


def matrices(tables: Sequence[Table]) -> tuple[Matrix, ...]:
    """A matrix for each set of conditions, in the tables' order."""
    grouped: dict[str, list[Table]] = {}
    for table in tables:
        grouped.setdefault(_conditions(table.partition), []).append(table)
    return tuple(_matrix(key, group) for key, group in grouped.items())


def _conditions(partition: Partition) -> str:
    return digest_of(partition.model_dump(mode="json", exclude=set(OF_A_TASK)))[:8]


def _matrix(key: str, tables: Sequence[Table]) -> Matrix:
    methods = dict.fromkeys((row.name, row.options) for table in tables for row in _methods(table))
    columns = [_column(name, options, [name for name, _ in methods], tables) for name, options in methods]
    columns.sort(key=lambda column: (column.missing, -(column.overall.value if column.overall else 0), column.label))
    lines = tuple(_line(table, columns, tables) for table in tables)
    return Matrix(key, tables[0].partition, lines, tuple(columns))


def _methods(table: Table) -> list[Row]:
    return [row for row in table.rows if row.kind == "method"]


def _cell(table: Table, name: str, options: str) -> Row | None:
    return next((row for row in _methods(table) if (row.name, row.options) == (name, options)), None)


def _column(name: str, options: str, names: Sequence[str], tables: Sequence[Table]) -> Column:
    cells = [_cell(table, name, options) for table in tables]
    missing = sum(cell is None or cell.heldout is None for cell in cells)
    label = f"{name} ({options})" if names.count(name) > 1 and options else name
    overall = None if missing else over_tasks([cell.heldout for cell in cells if cell and cell.heldout])
    seen = {mark for cell in cells if cell for mark in cell.marks}
    return Column(label, name, options, overall, missing, tuple(mark for mark in CARRIED if mark in seen))


def _line(table: Table, columns: Sequence[Column], tables: Sequence[Table]) -> Line:
    task = table.partition.task
    alike = [other.partition for other in tables if other.partition.task == task]
    label = task
    if len({other.task_digest for other in alike}) > 1:
        label += f" · task {table.partition.task_digest[:8]}"
    if len({other.brief_digest for other in alike}) > 1:
        label += f" · brief {table.partition.brief_digest[:8]}"
    return Line(table, label, tuple(_cell(table, column.name, column.options) for column in columns))


def sorted_by(matrix: Matrix, label: str | None) -> tuple[Line, ...]:
    """The lines, best speedup of one method first (what is missing last); by name without a method."""
    place = next((index for index, column in enumerate(matrix.columns) if column.label == label), None)
    if place is None:
        return tuple(sorted(matrix.lines, key=lambda line: line.label))

    def key(line: Line) -> tuple[bool, float]:
        row = line.cells[place]
        value = row.heldout.value if row and row.heldout else None
        return value is None, -(value or 0.0)

    return tuple(sorted(matrix.lines, key=key))
