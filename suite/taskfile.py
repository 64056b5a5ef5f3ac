"""task.toml: its tables as types, read strictly together with the pieces of the folder it names."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from suite.errors import TaskError
from suite.strict import parse, read_toml
from suite.types import Baseline, Definition, Frozen, HeldoutPlan, Language, OutputTolerance, StarterKind


class ShapeEntry(Frozen):
    """A workload as task.toml has it."""

    params: dict[str, JsonValue]


class LaneTable(Frozen):
    """What a task says about one lane; timed shapes belong here because they are sized for a device."""

    languages: tuple[Language, ...]
    timeout_s: float
    hints: str = ""
    search: tuple[ShapeEntry, ...]
    heldout: HeldoutPlan
    starters: dict[Language, dict[StarterKind, tuple[str, ...]]]
    baseline: Baseline


class TaskFile(Frozen):
    """task.toml."""

    title: str
    origin: str
    licence: str
    definition: Definition
    tolerance: dict[str, OutputTolerance]
    check: tuple[ShapeEntry, ...]
    lane: dict[str, LaneTable]


def parse_file(folder: Path, where: str) -> TaskFile:
    """The folder's task.toml with reference.py put into its definition. Raises `TaskError`."""
    data = read_toml(folder / "task.toml", TaskError)
    definition = data.get("definition")
    if isinstance(definition, dict):
        definition = data["definition"] = {**definition, "reference": read(folder, "reference.py")}
        for table in ("inputs", "outputs"):  # TOML has no null: an argument without a shape is a scalar
            arguments = definition.get(table)
            for spec in arguments.values() if isinstance(arguments, dict) else ():
                if isinstance(spec, dict):
                    spec.setdefault("shape", None)
    return parse(TaskFile, data, where, TaskError)


def read(folder: Path, name: str) -> str:
    """A file of the task. Raises `TaskError` if it is not there."""
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(f"task {folder.name} lacks {name}", f"a file {name} in its folder", "add it") from None


def check_consistency(content: TaskFile, table: LaneTable, folder: Path, where: str) -> None:
    """Raises `TaskError` where tables that are fine by themselves contradict each other or the folder."""
    definition = content.definition
    if definition.name != folder.name:
        raise TaskError(
            f"{where}: definition.name = {definition.name!r}",
            "the folder's name",
            f"call one like the other ({folder.name!r})",
        )
    if content.tolerance.keys() != definition.outputs.keys():
        raise TaskError(
            f"{where}: tolerance for {', '.join(content.tolerance) or 'nothing'}",
            f"exactly one entry for each output: {', '.join(definition.outputs)}",
            "correct the table [tolerance]",
        )
    if not table.search or not content.check:
        raise TaskError(
            f"{where}: an empty split",
            "at least one search and one check workload",
            "add [[check]] or [[lane.*.search]]",
        )
    for files in [table.baseline.files, *(files for kinds in table.starters.values() for files in kinds.values())]:
        for name in files:
            read(folder, name)
