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
from suite.strict import nearest
from suite.taskfile import LaneTable, TaskFile, check_consistency, parse_file, read
from suite.types import (
    Candidate,
    Definition,
    Language,
    SourceFile,
    Spec,
    Split,
    StarterKind,
    Task,
    Workload,
    digest_of,
)

SUFFIXES = {".cpp": Language.CPP, ".py": Language.PYTHON, ".cu": Language.CUDA}
_UUIDS = uuid.UUID("5f1d3c1e-6a0b-4c53-9d5e-0d3f6b1f7a10")


# ---------------------------------------------------------------------------------------------- loading


def load(folder: Path, lane: str = "cpu") -> Task:
    """The task in `folder` for `lane`. Raises `TaskError` for a missing or malformed piece and for an absent lane."""
    folder = folder.resolve()
    where = f"{folder.name}/task.toml"
    content = parse_file(folder, where)
    if lane not in content.lane:
        present = ", ".join(sorted(content.lane))
        raise TaskError(f"{where} has no lane {lane!r}", f"one of its lanes: {present}", nearest(lane, content.lane))
    table = content.lane[lane]
    check_consistency(content, table, folder, where)
    workloads = _workloads(content, table, folder, where)
    for kind in table.heldout.draws.values():
        _draw(kind, random.Random(0))  # malformed ones are found here, not when the first champion is measured
    decisive: dict[str, JsonValue] = {
        "lane": lane,
        "definition": content.definition.model_dump(mode="json"),
        "tolerance": {name: one.model_dump(mode="json") for name, one in content.tolerance.items()},
        "workloads": [one.model_dump(mode="json") for one in workloads],
        "heldout": table.heldout.model_dump(mode="json"),
        "baseline": table.baseline.model_dump(mode="json"),
        "timeout_s": table.timeout_s,
        "files": {name: read(folder, name) for name in ("shapes.py", "inputs.py", *table.baseline.files)},
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


def lanes(folder: Path) -> tuple[str, ...]:
    """The lanes a folder's task.toml has. Raises `TaskError`."""
    return tuple(parse_file(folder.resolve(), f"{folder.name}/task.toml").lane)


def module(task: Task, name: Literal["shapes", "inputs", "reference"]) -> ModuleType:
    """The task's Python file `name`.py, executed anew when its text has changed; not put into sys.modules.

    `shapes` needs the standard library only; `inputs` and `reference` import torch and are for the judge.
    """
    path = Path(task.folder) / f"{name}.py"
    return _execute(path, hashlib.sha256(read(path.parent, path.name).encode()).hexdigest())


@functools.lru_cache(maxsize=64)
def _execute(path: Path, digest: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.stem}_{digest[:8]}", path)
    assert spec is not None and spec.loader is not None, "a .py path always has a loader"
    loaded = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except (SyntaxError, ImportError, NameError) as problem:
        raise TaskError(f"{path} does not run: {problem}", "Python that can be imported", "correct it") from problem
    return loaded


def _workloads(content: TaskFile, table: LaneTable, folder: Path, where: str) -> tuple[Workload, ...]:
    shapes = _execute(folder / "shapes.py", hashlib.sha256(read(folder, "shapes.py").encode()).hexdigest())
    made = [
        _workload(content.definition, shapes, entry.params, split)
        for split, entries in ((Split.SEARCH, table.search), (Split.CHECK, content.check))
        for entry in entries
    ]
    seen: set[str] = set()
    for one in made:
        if one.uuid in seen:
            raise TaskError(
                f"{where}: params {json.dumps(one.params)} twice", "workloads that differ", "remove one of the two"
            )
        seen.add(one.uuid)
    return tuple(made)


def _workload(definition: Definition, shapes: ModuleType, params: dict[str, JsonValue], split: Split) -> Workload:
    try:
        axes: dict[str, int] = shapes.axes(params)
    except (KeyError, TypeError, ValueError) as problem:
        raise TaskError(
            f"params {json.dumps(params)} of {definition.name}: {type(problem).__name__} {problem}",
            "parameters as its shapes.py describes them",
            "correct them in task.toml",
        ) from problem
    if axes.keys() != set(definition.var_axes()):
        raise TaskError(
            f"shapes.py of {definition.name} gives the axes {list(axes)}",
            f"exactly {list(definition.var_axes())}",
            "correct its axes()",
        )
    identity = json.dumps([definition.name, params], sort_keys=True)
    return Workload(uuid=str(uuid.uuid5(_UUIDS, identity)), split=split, axes=axes, params=params)


# ---------------------------------------------------------------------------------------------- held-out workloads


def draw_heldout(task: Task, seed: bytes) -> tuple[Workload, ...]:
    """The held-out workloads that `seed` draws from the declared distribution: distinct, none of them known before."""
    rng = random.Random(int.from_bytes(hashlib.sha256(task.name.encode() + b"\0" + seed).digest()))
    shapes = module(task, "shapes")
    known = {workload.uuid for workload in task.workloads}
    drawn: dict[str, Workload] = {}
    for _ in range(100 * task.heldout.count):
        draw = {name: _draw(kind, rng) for name, kind in task.heldout.draws.items()}
        one = _workload(task.definition, shapes, shapes.heldout_params(draw, rng), Split.HELDOUT)
        if one.uuid not in known:
            drawn.setdefault(one.uuid, one)
        if len(drawn) == task.heldout.count:
            return tuple(drawn.values())
    raise TaskError(
        f"the held-out distribution of {task.name} gave only {len(drawn)} workloads in many draws",
        f"{task.heldout.count} that differ from each other and from the known workloads",
        "widen its ranges or lower its count",
    )


def _draw(kind: dict[str, list[Any]], rng: random.Random) -> JsonValue:
    """One value. Uses random() only, the one sequence Python promises to keep across versions."""
    match kind:
        case {"uniform_int": [int(low), int(high)]} if low <= high:
            return low + int(rng.random() * (high - low + 1))
        case {"log_uniform_int": [int(low), int(high)]} if 1 <= low <= high:
            return min(high, int(math.exp(math.log(low) + rng.random() * (math.log(high + 1) - math.log(low)))))
        case {"choice": [_, *_] as values}:
            return values[int(rng.random() * len(values))]  # type: ignore[no-any-return]
    raise TaskError(
        f"held-out draw {kind}",
        "uniform_int = [low, high], log_uniform_int = [low, high] with 1 <= low, or choice = [...]",
        "correct it in task.toml",
    )


# ---------------------------------------------------------------------------------------------- candidates


def starter(task: Task, language: Language, kind: StarterKind = StarterKind.PLAIN) -> Candidate:
    """The correct kernel a trial starts from. Raises `TaskError` naming the present ones."""
    files = task.starters.get(f"{language}-{kind}")
    if files is None:
        present = ", ".join(sorted(task.starters))
        raise TaskError(f"{task.name} has no {kind} starter in {language}", f"one of: {present}", "choose one of these")
    return _candidate(task, _stored(task, files), language)


def baseline(task: Task) -> Candidate:
    """The expert implementation as a candidate."""
    chosen = task.baseline
    spec = Spec(
        language=chosen.language,
        entry_point=chosen.entry_point,
        target_hardware=(task.lane,),
        destination_passing_style=chosen.destination_passing_style,
    )
    return Candidate(spec=spec, sources=_stored(task, chosen.files))


def from_files(task: Task, paths: Sequence[Path]) -> Candidate:
    """A candidate from the user's files; the first one holds `run`. Raises `UserError` if that can not be."""
    first = paths[0]
    language = SUFFIXES.get(first.suffix)
    if language is None:
        raise UserError(f"{first.name} is in no known language", f"a file ending in {', '.join(SUFFIXES)}", "rename it")
    sources = tuple(_source(path) for path in paths)
    if language is Language.PYTHON and Language.TRITON in task.languages and "import triton" in sources[0].content:
        language = Language.TRITON
    if language not in task.languages:
        known = ", ".join(task.languages)
        raise UserError(
            f"{first.name} is {language}",
            f"lane {task.lane} of {task.name} takes {known}",
            "choose another lane or language",
        )
    return _candidate(task, sources, language)


def _source(path: Path) -> SourceFile:
    if path.exists() and not path.is_file():  # to open a pipe would wait for somebody to write into it
        raise UserError(f"{path} is no regular file", "a UTF-8 source file", "check the path")
    try:
        return SourceFile(path=path.name, content=path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{path} can not be read: {problem}", "a UTF-8 source file", "check the path") from None


def _stored(task: Task, names: Sequence[str]) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(path=name, content=read(Path(task.folder), name)) for name in names)


def _candidate(task: Task, sources: tuple[SourceFile, ...], language: Language) -> Candidate:
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
    """Whether the Python `run` takes the outputs too, by its number of parameters. In doubt: yes, the judge tells."""
    taken = len(task.definition.inputs)
    try:
        tree = ast.parse(source.content)
    except SyntaxError:
        return True
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "run":
            count = len(node.args.posonlyargs) + len(node.args.args)
            return count != taken
    return True
