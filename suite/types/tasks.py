"""What must be computed and what is proposed: definitions, workloads, tasks, candidates.

Field names of `Definition`, `Workload`, `SourceFile` and `Spec` are FlashInfer-Bench's, so that its data sets load
unchanged; what we add (split, params, tolerance, lane) stands beside them under names it does not use.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from suite.types.base import DType, Frozen, Language, Split, digest_of


class Axis(Frozen):
    """A dimension's name: fixed by the definition (`const`, with `value`) or by the workload (`var`)."""

    type: Literal["const", "var"]
    value: int | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _value_iff_const(self) -> Axis:
        if (self.type == "const") != (self.value is not None):
            raise ValueError(f"a {self.type} axis {'needs' if self.type == 'const' else 'has no'} value")
        return self


class TensorSpec(Frozen):
    """An argument: its shape in axis names (null: a scalar) and dtype."""

    shape: tuple[str, ...] | None
    dtype: DType
    description: str | None = None
    optional: bool = False


class Definition(Frozen):
    """What must be computed. The order of `inputs`, then of `outputs`, is the order of a kernel's arguments."""

    name: str
    op_type: str
    axes: dict[str, Axis]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    reference: str
    tags: tuple[str, ...] = ()
    description: str = ""
    constraints: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _shapes_name_axes(self) -> Definition:
        if shared := self.inputs.keys() & self.outputs.keys():
            raise ValueError(f"inputs and outputs share the names {sorted(shared)}")
        for name, spec in {**self.inputs, **self.outputs}.items():
            if unknown := [axis for axis in spec.shape or () if axis not in self.axes]:
                raise ValueError(f"{name} has the axes {unknown}, which are not among {list(self.axes)}")
        return self

    def var_axes(self) -> tuple[str, ...]:
        """Names of the axes a workload sets, in order of definition."""
        return tuple(name for name, axis in self.axes.items() if axis.type == "var")

    def shape(self, spec: TensorSpec, axes: dict[str, int]) -> tuple[int, ...]:
        """The spec's shape under a workload's axes (a scalar: the empty tuple)."""
        fixed = {name: axis.value for name, axis in self.axes.items() if axis.value is not None}
        return tuple({**fixed, **axes}[name] for name in spec.shape or ())


class Workload(Frozen):
    """One shape of a task: `axes` as FlashInfer-Bench has them, `params` what our inputs.py makes them from."""

    uuid: str
    split: Split
    axes: dict[str, int]
    params: dict[str, JsonValue] = Field(default_factory=dict)


class OutputTolerance(Frozen):
    """When an output counts as right (compare.py applies it; the numbers come from the task's calibration).

    An element passes iff |d| <= rtol * |ref| + atol * s, with s the rms of its slice when `scaled`, else 1. A slice is
    one index of the leading `slice_axes` axes. The output passes iff at least `matched_ratio` of its elements pass, no
    element exceeds `cap` times its tolerance, and in every slice ||d|| / ||ref|| <= `norm` (None: not asked).
    NaN, +inf and -inf must coincide in position.
    """

    rtol: float
    atol: float
    scaled: bool = True
    matched_ratio: float = 1.0
    cap: float = 1.0
    norm: float | None = None
    slice_axes: int = 1


class HeldoutPlan(Frozen):
    """The declared distribution of held-out workloads: how many, and how each name's value is drawn.

    `draws[name]` is {"uniform_int": [lo, hi]}, {"log_uniform_int": [lo, hi]} or {"choice": [...]}; bounds inclusive.
    """

    count: int
    draws: dict[str, dict[str, list[JsonValue]]]


class Baseline(Frozen):
    """The expert implementation speedup is measured against, chosen at admission, then frozen."""

    name: str
    version: int
    language: Language
    files: tuple[str, ...]
    entry_point: str
    destination_passing_style: bool = True


class Task(Frozen):
    """A task folder, loaded for one lane. `digest` covers all that decides a result; rankings never mix digests."""

    definition: Definition
    title: str
    lane: str
    languages: tuple[Language, ...]
    workloads: tuple[Workload, ...]
    heldout: HeldoutPlan
    tolerance: dict[str, OutputTolerance]
    baseline: Baseline
    starters: dict[str, tuple[str, ...]]
    hints: str
    timeout_s: float
    folder: str
    digest: str
    origin: str
    licence: str

    @property
    def name(self) -> str:
        return self.definition.name

    def split(self, split: Split) -> tuple[Workload, ...]:
        return tuple(workload for workload in self.workloads if workload.split == split)


class SourceFile(Frozen):
    path: str
    content: str


class Spec(Frozen):
    """How sources become a callable. `entry_point` is "file::symbol"."""

    language: Language
    entry_point: str
    target_hardware: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    destination_passing_style: bool = True
    binding: Literal["c", "tvm-ffi", "torch"] | None = None


class Candidate(Frozen):
    """A proposed kernel, content-addressed: the same spec and sources have the same `id` and are one evaluation."""

    spec: Spec
    sources: tuple[SourceFile, ...]

    @property
    def id(self) -> str:
        return digest_of(self.model_dump(mode="json"))[:16]

    def text(self, path: str | None = None) -> str:
        """Content of the file at `path` (default: the entry point's file)."""
        wanted = path or self.spec.entry_point.split("::")[0]
        return next(source.content for source in self.sources if source.path == wanted)
