"""Admits a task: is the tolerance right, the baseline the fastest, the starter correct, and does every mutant fail?

A task folder may hold, beside what `task.load` asks for:
  trusted/*   correct implementations; with baseline and starters they calibrate the tolerance, and any of them that
              beats the frozen baseline should replace it
  mutants/*   implementations that are wrong on purpose. A C++ mutant may include "correct.h": the plain C++ starter
              with its `run` renamed `correct`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from suite import task as tasks
from suite.compare import LARGEST
from suite.evaluator import Evaluator
from suite.judge.build import Builder
from suite.judge.calibration import Usage, measure
from suite.judge.direct import load_kernel
from suite.score import score
from suite.types import Candidate, Evaluation, Frozen, Job, Language, SourceFile, Split, StarterKind, Status, Task, Tier

SEEDS = 32
MARGIN = 3.0
"""A tolerance allows this many times the worst error of a trusted implementation."""
OVERSHOOT = 10.0
"""A mutant misses the tolerance by at least this factor somewhere."""
NOISE = 0.05
"""A choice replaces the frozen baseline only if it is faster by more than this."""
MIN_TRUSTED = 3


class Contender(Frozen):
    """A baseline choice, judged against the frozen one. `busy`: others used the machine, so the figure is doubtful."""

    name: str
    status: Status
    speedup: float
    busy: bool
    detail: str


class Margin(Frozen):
    """What is allowed of an output over the worst that trusted implementations do; `norm` is None where not asked."""

    output: str
    elements: float
    norm: float | None


class MutantVerdict(Frozen):
    """How a mutant ended. `overshoot` is its largest error in multiples of what is allowed, elements or norm."""

    name: str
    status: Status
    detail: str
    overshoot: float


class AdmissionReport(Frozen):
    """What was measured, and in `objections` what speaks against admission."""

    task: str
    lane: str
    digest: str
    device: str
    seeds: int
    starters: dict[str, Status]
    contenders: tuple[Contender, ...]
    margins: tuple[Margin, ...]
    mutants: tuple[MutantVerdict, ...]
    usages: tuple[Usage, ...]
    objections: tuple[str, ...]

    @property
    def admitted(self) -> bool:
        return not self.objections


def trusted(task: Task) -> dict[str, Candidate]:
    """The baseline, all starters and trusted/*, by name."""
    found = {"baseline": tasks.baseline(task)}
    for key in task.starters:
        language, _, kind = key.partition("-")
        found[f"starter {key}"] = tasks.starter(task, Language(language), StarterKind(kind))
    found |= {path.stem: tasks.from_files(task, [path]) for path in _files(task, "trusted")}
    return found


def mutants(task: Task) -> dict[str, Candidate]:
    """mutants/*, by name."""
    found = {path.stem: tasks.from_files(task, [path]) for path in _files(task, "mutants")}
    if f"{Language.CPP}-{StarterKind.PLAIN}" not in task.starters:
        return found
    plain = tasks.starter(task, Language.CPP).text()
    header = SourceFile(path="correct.h", content=f"#define run correct\n{plain}\n#undef run\n")
    return {
        name: one.model_copy(update={"sources": (*one.sources, header)}) if one.spec.language == Language.CPP else one
        for name, one in found.items()
    }


def admit(folder: Path, judge: Evaluator, builder: Builder, lane: str = "cpu", seeds: int = SEEDS) -> AdmissionReport:
    """Measure everything. Raises `TaskError` for a folder that does not load, `InfraError` for a failure of ours."""
    task = tasks.load(folder, lane)
    correct, wrong = trusted(task), mutants(task)
    usages = _usages(task, correct, builder, seeds)
    verdicts = {name: _judge(task, candidate, judge) for name, candidate in correct.items()}
    margins = _margins(task, usages)
    mutant_verdicts = _mutant_verdicts(task, wrong, judge, builder)
    return AdmissionReport(
        task=task.name,
        lane=lane,
        digest=task.digest,
        device=verdicts["baseline"].device,
        seeds=seeds,
        starters={name: one.status for name, one in verdicts.items() if name.startswith("starter ")},
        contenders=tuple(_contender(name, one) for name, one in verdicts.items()),
        margins=margins,
        mutants=mutant_verdicts,
        usages=usages,
        objections=(
            *_objections_to_trusted(verdicts),
            *_objections_to_margins(margins),
            *_objections_to_mutants(mutant_verdicts),
        ),
    )


def save(report: AdmissionReport, folder: Path) -> Path:
    """Keep the report beside the task, as calibration.json (no part of the digest)."""
    path = folder / "calibration.json"
    path.write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return path


def _files(task: Task, kind: str) -> list[Path]:
    return sorted(path for path in (Path(task.folder) / kind).glob("*") if path.suffix in tasks.SUFFIXES)


def _judge(task: Task, candidate: Candidate, judge: Evaluator) -> Evaluation:
    return judge.evaluate(Job(task=task, candidate=candidate, tier=Tier.SEARCH))


def _words(evaluation: Evaluation) -> str:
    return f"{evaluation.failure.stage}: {evaluation.failure.detail}" if evaluation.failure else ""


def _contender(name: str, evaluation: Evaluation) -> Contender:
    return Contender(
        name=name,
        status=evaluation.status,
        speedup=score(evaluation).value,
        busy=evaluation.busy,
        detail=_words(evaluation),
    )


def _usages(task: Task, candidates: Mapping[str, Candidate], builder: Builder, seeds: int) -> tuple[Usage, ...]:
    kernels = {name: load_kernel(task.definition, one, builder) for name, one in candidates.items()}
    return measure(task, kernels, seeds, (Split.CHECK, Split.SEARCH))


def _margins(task: Task, usages: tuple[Usage, ...]) -> tuple[Margin, ...]:
    made = []
    for output, tolerance in task.tolerance.items():
        mine = [usage for usage in usages if usage.output == output]
        elements, norm = max(one.elements for one in mine), max(one.norm for one in mine)
        made.append(
            Margin(
                output=output,
                elements=1 / max(elements, 1e-9),
                norm=None if tolerance.norm is None else tolerance.norm / max(norm, 1e-9),
            )
        )
    return tuple(made)


def _mutant_verdicts(
    task: Task, wrong: Mapping[str, Candidate], judge: Evaluator, builder: Builder
) -> tuple[MutantVerdict, ...]:
    usages = _usages(task, wrong, builder, seeds=1)
    made = []
    for name, candidate in wrong.items():
        verdict = _judge(task, candidate, judge)
        overshoot = max(_overshoot(task, usage) for usage in usages if usage.implementation == name)
        made.append(MutantVerdict(name=name, status=verdict.status, detail=_words(verdict), overshoot=overshoot))
    return tuple(made)


def _overshoot(task: Task, usage: Usage) -> float:
    norm = task.tolerance[usage.output].norm
    return min(max(usage.elements, usage.norm / norm if norm else 0.0), LARGEST)


# ---------------------------------------------------------------------------------------------- objections


def _objections_to_trusted(verdicts: Mapping[str, Evaluation]) -> list[str]:
    found = []
    if len(verdicts) < MIN_TRUSTED:
        found.append(f"only {len(verdicts)} trusted implementations; calibration needs {MIN_TRUSTED}")
    for name, verdict in verdicts.items():
        if verdict.status != Status.PASSED:
            found.append(f"{name}, which is trusted, ended as {verdict.status} ({_words(verdict)})")
        elif score(verdict).value > (1 + NOISE) * max(1.0, score(verdicts["baseline"]).value):
            found.append(f"{name} is faster than the baseline ({score(verdict).value:.2f} times): freeze it instead")
    return found


def _objections_to_margins(margins: tuple[Margin, ...]) -> list[str]:
    found = []
    for margin in margins:
        if margin.elements < MARGIN:
            had = f"rtol and atol are {margin.elements:.2f} times the worst trusted error"
            found.append(f"{margin.output}: {had}, not {MARGIN:g}")
        if margin.norm is not None and margin.norm < MARGIN:
            found.append(f"{margin.output}: norm is {margin.norm:.2f} times the worst trusted distance, not {MARGIN:g}")
    return found


def _objections_to_mutants(verdicts: tuple[MutantVerdict, ...]) -> list[str]:
    found = [f"mutant {one.name} passed" for one in verdicts if one.status == Status.PASSED]
    found += [
        f"mutant {one.name} misses the tolerance by a factor of {one.overshoot:.2g} at most, not {OVERSHOOT:g}"
        for one in verdicts
        if one.overshoot < OVERSHOOT
    ]
    return found if verdicts else ["there are no mutants"]
