"""A task's own Python (inputs.py, reference.py) with types around it; runs in the judge only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import JsonValue

from suite.compare import Comparison, compare, worst
from suite.errors import TaskError
from suite.judge.memory import Pool
from suite.task import module
from suite.types import Task, Workload

Inputs = dict[str, torch.Tensor | float | int]
Outputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Cost:
    """What a workload necessarily moves and computes."""

    bytes_moved: int | None
    flops: int | None


class Course:
    """What the judge asks a task: inputs, their refreshment, the truth, and whether outputs are near enough."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._inputs, self._reference = module(task, "inputs"), module(task, "reference")

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the input families; the first one is timed."""
        return tuple(self._inputs.FAMILIES)

    def make(self, workload: Workload, rng: np.random.Generator, family: str) -> Inputs:
        """Inputs in the definition's order, drawn anew."""
        made: Inputs = self._inputs.make_inputs(workload.params, rng, family)
        return {name: made[name] for name in self.task.definition.inputs}

    def refresh(self, inputs: Inputs, params: Mapping[str, JsonValue], pool: Pool, rng: np.random.Generator) -> None:
        """New contents in place, cheaply."""
        self._inputs.refresh(inputs, params, pool, rng)

    def truth(self, inputs: Inputs) -> Outputs:
        """What the reference computes, by the outputs' names. Raises `TaskError` if their number is wrong."""
        results = self._reference.run(*inputs.values())
        values = (results,) if isinstance(results, torch.Tensor) else tuple(results)
        names = tuple(self.task.definition.outputs)
        if len(values) != len(names):
            raise TaskError(
                f"reference.py of {self.task.name} returned {len(values)} outputs",
                f"one for each of {', '.join(names)}",
                "correct its run()",
            )
        return dict(zip(names, values, strict=True))

    def spot_check(self, inputs: Inputs, outputs: Outputs, rng: np.random.Generator) -> Comparison:
        """Some rows of the outputs against the reference; which ones is drawn now, after the call."""
        part, rows = self._inputs.sample(inputs, rng)
        return self.compare({name: output[rows] for name, output in outputs.items()}, self.truth(part))

    def compare(self, got: Outputs, want: Outputs) -> Comparison:
        """All outputs by the task's tolerances."""
        parts = []
        for name, tolerance in self.task.tolerance.items():
            part = compare(got[name], want[name], tolerance)
            parts.append(part if part.ok else part.model_copy(update={"detail": f"{name}: {part.detail}"}))
        return worst(parts)

    def cost(self, workload: Workload) -> Cost:
        """Necessary bytes and operations of a workload."""
        known = self._inputs.cost(workload.params)
        return Cost(bytes_moved=known.get("bytes"), flops=known.get("flops"))
