"""How much of a task's tolerance its trusted implementations use, and by how much its mutants overshoot it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from suite.compare import LARGEST
from suite.judge.course import Course, Inputs
from suite.judge.direct import Kernel
from suite.types import Frozen, OutputTolerance, Split, Task, Workload


class Usage(Frozen):
    """The worst errors of one implementation on one output, over shapes and seeds of an input family.

    `elements` is the largest error in multiples of what its element is allowed (`OutputTolerance.cap` aside), `norm`
    the largest distance of a slice, ||d|| / ||ref||. `absolute` is the largest |d|.
    """

    implementation: str
    split: Split
    family: str
    output: str
    elements: float = 0.0
    norm: float = 0.0
    absolute: float = 0.0

    def joined(self, other: Usage) -> Usage:
        """The worse of both in every figure."""
        figures = {name: max(getattr(self, name), getattr(other, name)) for name in ("elements", "norm", "absolute")}
        return self.model_copy(update=figures)


def measure(task: Task, kernels: Mapping[str, Kernel], seeds: int, splits: tuple[Split, ...]) -> tuple[Usage, ...]:
    """The usage of every kernel on contents from `seeds` seeds of every workload of `splits`.

    Check workloads see every family with every seed; timed ones, which are large, one family for each seed in turn.
    """
    course = Course(task)
    found: dict[tuple[str, Split, str, str], Usage] = {}
    for workload, family, inputs in _contents(course, seeds, splits):
        truth = course.truth(inputs)
        for name, kernel in kernels.items():
            got = kernel(inputs, workload.axes)
            for output, tolerance in task.tolerance.items():
                elements, norm, absolute = _errors(got[output], truth[output], tolerance)
                usage = Usage(
                    implementation=name,
                    split=workload.split,
                    family=family,
                    output=output,
                    elements=elements,
                    norm=norm,
                    absolute=absolute,
                )
                key = (name, workload.split, family, output)
                found[key] = usage.joined(found[key]) if key in found else usage
    return tuple(found[key] for key in sorted(found))


def _contents(course: Course, seeds: int, splits: tuple[Split, ...]) -> Iterator[tuple[Workload, str, Inputs]]:
    families = course.families
    for workload in course.task.workloads:
        if workload.split not in splits:
            continue
        for seed in range(seeds):
            every = workload.split == Split.CHECK
            for number, family in enumerate(families if every else [families[seed % len(families)]]):
                rng = np.random.default_rng([seed, number])
                yield workload, family, course.make(workload, rng, family)


def _errors(got: torch.Tensor, want: torch.Tensor, tolerance: OutputTolerance) -> tuple[float, float, float]:
    """(elements, norm, absolute) as in `Usage`; all are `LARGEST` if values that are not finite do not coincide."""
    if want.numel() == 0:
        return 0.0, 0.0, 0.0
    leading = want.shape[: tolerance.slice_axes]
    found, wanted = (tensor.double().reshape(*leading, -1) for tensor in (got, want))
    odd = ~(torch.isfinite(found) & torch.isfinite(wanted))
    if bool((odd & (found != wanted)).any()):
        return LARGEST, LARGEST, LARGEST
    found, wanted = found.masked_fill(odd, 0), wanted.masked_fill(odd, 0)
    error = (found - wanted).abs()
    rms = wanted.square().mean(dim=-1, keepdim=True).sqrt() if tolerance.scaled else torch.ones_like(wanted)
    allowed = tolerance.rtol * wanted.abs() + tolerance.atol * rms
    norm = _ratio(torch.linalg.vector_norm(error, dim=-1), torch.linalg.vector_norm(wanted, dim=-1))
    return _ratio(error, allowed), norm, float(error.amax())


def _ratio(part: torch.Tensor, whole: torch.Tensor) -> float:
    """The largest part / whole, with 0 / 0 = 0 and at most `LARGEST`."""
    return min(float(torch.where(part > 0, part / whole, 0.0).amax()), LARGEST)
