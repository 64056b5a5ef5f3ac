"""A task folder on disk: strictly loaded, digested, and turned into candidates. Needs no torch."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import math
import random
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import JsonValue

from suite.errors import TaskError, UserError
from suite.strict import nearest, parse, read_toml
from suite.types import (
    Baseline,
    Candidate,
    Definition,
    Frozen,
    HeldoutPlan,
    Language,
    OutputTolerance,
    SourceFile,
    Spec,
    Split,
    StarterKind,
    Task,
    Workload,
    digest_of,
)

MODULES = ("shapes", "inputs", "reference")
SUFFIXES = {".cpp": Language.CPP, ".py": Language.PYTHON, ".cu": Language.CUDA}
_UUIDS = uuid.UUID("5f1d3c1e-6a0b-4c53-9d5e-0d3f6b1f7a10")


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


# ---------------------------------------------------------------------------------------------- loading


def load(folder: Path, lane: str = "cpu") -> Task:
    """The task in `folder` for `lane`. Raises `TaskError` for a missing or malformed piece and for an absent lane."""
    folder = folder.resolve()
    where = f"{folder.name}/task.toml"
    content = _parse_file(folder, where)
    if lane not in content.lane:
        present = ", ".join(sorted(content.lane))
        raise TaskError(f"{where} has no lane {lane!r}", f"one of its lanes: {present}", nearest(lane, content.lane))
    table = content.lane[lane]
    _check_consistency(content, table, folder, where)
    workloads = _workloads(content, table, folder, where)
    decisive: dict[str, JsonValue] = {
        "lane": lane,
        "definition": content.definition.model_dump(mode="json"),
        "tolerance": {name: one.model_dump(mode="json") for name, one in content.tolerance.items()},
        "workloads": [one.model_dump(mode="json") for one in workloads],
        "heldout": table.heldout.model_dump(mode="json"),
        "baseline": table.baseline.model_dump(mode="json"),
        "timeout_s": table.timeout_s,
        "files": {name: _read(folder, name) for name in ("shapes.py", "inputs.py", *table.baseline.files)},
    }
    return Task(
        definition=content.definition,
        title=content.title,
        lane=lane,
        languages=table.languages,
        workloads=workloads,
        heldout=table.heldout,
        tolerance=content.tolerance,
        baseline=table.baseline,
        starters={f"{lang}-{kind}": files for lang, kinds in table.starters.items() for kind, files in kinds.items()},
        hints=table.hints.strip(),
        timeout_s=table.timeout_s,
        folder=str(folder),
        digest=digest_of(decisive),
        origin=content.origin,
        licence=content.licence,
    )


def module(task: Task, name: Literal["shapes", "inputs", "reference"]) -> ModuleType:
    """The task's Python file `name`.py, executed anew when its text has changed; not put into sys.modules.

    `shapes` needs the standard library only; `inputs` and `reference` import torch and are for the judge.
    """
    path = Path(task.folder) / f"{name}.py"
    return _execute(path, hashlib.sha256(_read(path.parent, path.name).encode()).hexdigest())


@functools.lru_cache(maxsize=64)
def _execute(path: Path, digest: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.stem}_{digest[:8]}", path)
    assert spec is not None and spec.loader is not None, "a .py path always has a loader"
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _parse_file(folder: Path, where: str) -> TaskFile:
    data = read_toml(folder / "task.toml", TaskError)
    definition = data.get("definition")
    if isinstance(definition, dict):
        definition = data["definition"] = {**definition, "reference": _read(folder, "reference.py")}
        for table in ("inputs", "outputs"):  # TOML has no null: an argument without a shape is a scalar
            arguments = definition.get(table)
            for spec in arguments.values() if isinstance(arguments, dict) else ():
                if isinstance(spec, dict):
                    spec.setdefault("shape", None)
    return parse(TaskFile, data, where, TaskError)


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(f"task {folder.name} lacks {name}", f"a file {name} in its folder", "add it") from None


def _check_consistency(content: TaskFile, table: LaneTable, folder: Path, where: str) -> None:
    definition = content.definition
    if definition.name != folder.name:
        raise TaskError(
            f"{where}: definition.name = {definition.name!r}", "the folder's name", f"call one like the other ({folder.name!r})"
        )
    if content.tolerance.keys() != definition.outputs.keys():
        raise TaskError(
            f"{where}: tolerance for {', '.join(content.tolerance) or 'nothing'}",
            f"exactly one entry for each output: {', '.join(definition.outputs)}",
            "correct the table [tolerance]",
        )
    if not table.search or not content.check:
        raise TaskError(f"{where}: an empty split", "at least one search and one check workload", "add [[check]] or [[lane.*.search]]")
    for files in [table.baseline.files, *(files for kinds in table.starters.values() for files in kinds.values())]:
        for name in files:
            _read(folder, name)


def _workloads(content: TaskFile, table: LaneTable, folder: Path, where: str) -> tuple[Workload, ...]:
    shapes = _execute(folder / "shapes.py", hashlib.sha256(_read(folder, "shapes.py").encode()).hexdigest())
    made = [
        _workload(content.definition, shapes, entry.params, split)
        for split, entries in ((Split.SEARCH, table.search), (Split.CHECK, content.check))
        for entry in entries
    ]
    seen: set[str] = set()
    for one in made:
        if one.uuid in seen:
            raise TaskError(f"{where}: params {json.dumps(one.params)} twice", "workloads that differ", "remove one of the two")
        seen.add(one.uuid)
    return tuple(made)


def _workload(definition: Definition, shapes: ModuleType, params: dict[str, JsonValue], split: Split) -> Workload:
    axes: dict[str, int] = shapes.axes(params)
    if axes.keys() != set(definition.var_axes()):
        raise TaskError(
            f"shapes.py of {definition.name} gives the axes {list(axes)}", f"exactly {list(definition.var_axes())}", "correct its axes()"
        )
    identity = json.dumps([definition.name, params], sort_keys=True)
    return Workload(uuid=str(uuid.uuid5(_UUIDS, identity)), split=split, axes=axes, params=params)


# ---------------------------------------------------------------------------------------------- held-out workloads


def draw_heldout(task: Task, seed: bytes) -> tuple[Workload, ...]:
    """The held-out workloads that `seed` draws from the declared distribution: distinct, none of them known before."""
    rng = random.Random(int.from_bytes(hashlib.sha256(task.name.encode() + b"\0" + seed).digest()))
    shapes = module(task, "shapes")
    known = {workload.uuid for workload in task.workloads}
    drawn: list[Workload] = []
    for _ in range(100 * task.heldout.count):
        if len(drawn) == task.heldout.count:
            return tuple(drawn)
        draw = {name: _draw(kind, rng) for name, kind in task.heldout.draws.items()}
        one = _workload(task.definition, shapes, shapes.heldout_params(draw, rng), Split.HELDOUT)
        if one.uuid not in known:
            known.add(one.uuid)
            drawn.append(one)
    raise TaskError(
        f"the held-out distribution of {task.name} gave only {len(drawn)} workloads in many draws",
        f"{task.heldout.count} that differ from each other and from the search workloads",
        "widen its ranges or lower its count",
    )


def _draw(kind: dict[str, list[Any]], rng: random.Random) -> JsonValue:
    """One value. Uses random() only, the one sequence Python promises to keep across versions."""
    match kind:
        case {"uniform_int": [int(low), int(high)]}:
            return low + int(rng.random() * (high - low + 1))
        case {"log_uniform_int": [int(low), int(high)]}:
            return min(high, int(math.exp(math.log(low) + rng.random() * (math.log(high + 1) - math.log(low)))))
        case {"choice": [_, *_] as values}:
            return values[int(rng.random() * len(values))]  # type: ignore[no-any-return]
    raise TaskError(f"held-out draw {kind}", "uniform_int or log_uniform_int = [low, high], or choice = [...]", "correct it in task.toml")


# ---------------------------------------------------------------------------------------------- candidates


def starter(task: Task, language: Language, kind: StarterKind = StarterKind.PLAIN) -> Candidate:
    """The correct kernel a trial starts from. Raises `TaskError` naming the present ones."""
    files = task.starters.get(f"{language}-{kind}")
    if files is None:
        present = ", ".join(sorted(task.starters))
        raise TaskError(f"{task.name} has no {kind} starter in {language}", f"one of: {present}", "choose one of these")
    return _candidate(task, [Path(task.folder) / name for name in files], language)


def baseline(task: Task) -> Candidate:
    """The expert implementation as a candidate."""
    chosen = task.baseline
    spec = Spec(
        language=chosen.language,
        entry_point=chosen.entry_point,
        target_hardware=(task.lane,),
        destination_passing_style=chosen.destination_passing_style,
    )
    return Candidate(spec=spec, sources=tuple(SourceFile(path=name, content=_read(Path(task.folder), name)) for name in chosen.files))


def from_files(task: Task, paths: Sequence[Path]) -> Candidate:
    """A candidate from the user's files; the first one holds `run`. Raises `UserError` if that can not be."""
    first = paths[0]
    language = SUFFIXES.get(first.suffix)
    if language is None:
        raise UserError(f"{first.name} is in no known language", f"a file ending in {', '.join(SUFFIXES)}", "rename it")
    try:
        text = first.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{first} can not be read: {problem}", "a UTF-8 source file", "check the path") from None
    if language is Language.PYTHON and Language.TRITON in task.languages and "import triton" in text:
        language = Language.TRITON
    if language not in task.languages:
        known = ", ".join(task.languages)
        raise UserError(f"{first.name} is {language}", f"lane {task.lane} of {task.name} takes {known}", "choose another lane or language")
    return _candidate(task, paths, language)


def _candidate(task: Task, paths: Sequence[Path], language: Language) -> Candidate:
    sources = tuple(SourceFile(path=path.name, content=path.read_text(encoding="utf-8")) for path in paths)
    in_place = True
    if language in (Language.PYTHON, Language.TRITON):
        in_place = _writes_in_place(task, sources[0])
    spec = Spec(
        language=language,
        entry_point=f"{sources[0].path}::run",
        target_hardware=(task.lane,),
        destination_passing_style=in_place,
    )
    return Candidate(spec=spec, sources=sources)


def _writes_in_place(task: Task, source: SourceFile) -> bool:
    """Whether the Python `run` takes the outputs too, by the number of its parameters. Unparsable: yes, and the judge will say."""
    taken, total = len(task.definition.inputs), len(task.definition.inputs) + len(task.definition.outputs)
    try:
        tree = ast.parse(source.content)
    except SyntaxError:
        return True
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "run":
            count = len(node.args.posonlyargs) + len(node.args.args)
            return count != taken or count == total
    return True
