"""The nouns of the suite: frozen, validated, free of torch and of I/O.

Field names of `Definition`, `Workload`, `SourceFile` and `Spec` are FlashInfer-Bench's, so that its data sets load
unchanged; what we add (split, params, tolerance, tier, lane) stands beside them under names it does not use.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

TIMING_PROTOCOL = "cpu-1"
"""Version of how the cpu lane is timed; rankings never mix versions."""


class Frozen(BaseModel):
    """Base of every record: immutable, and an unknown key is an error rather than a typo that passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def digest_of(value: JsonValue) -> str:
    """SHA-256 (hex) of a JSON value in canonical form (sorted keys, no spaces)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Split(StrEnum):
    """What a workload is for."""

    SEARCH = "search"  # timed, shown to methods
    CHECK = "check"  # small, untimed, undisclosed; run in every evaluation
    HELDOUT = "heldout"  # timed, champions only, drawn for each edition


class Tier(StrEnum):
    """How thoroughly a candidate is timed."""

    SEARCH = "search"  # one launch, short
    CHAMPION = "champion"  # several launches, long, interval over launches


class Language(StrEnum):
    CPP = "cpp"
    PYTHON = "python"
    TRITON = "triton"
    CUDA = "cuda"


class StarterKind(StrEnum):
    PLAIN = "plain"
    EXPERT = "expert"


class Status(StrEnum):
    """How an evaluation ended: FlashInfer-Bench's names and the endings it lacks. Only PASSED has a speed."""

    PASSED = "PASSED"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    POLICY = "POLICY"


class DType(StrEnum):
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    BOOL = "bool"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return {"float32": 4, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "int16": 2}.get(self.value, 1)


# ---------------------------------------------------------------------------------------------- the task


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
    params: dict[str, JsonValue] = {}


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


# ---------------------------------------------------------------------------------------------- the candidate


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


# ---------------------------------------------------------------------------------------------- the evaluation


class Launch(Frozen):
    """Raw samples of one pair of fresh processes on one workload, microseconds, empty round trip already subtracted.

    Samples come in A-B-B-A quads: calls 2i and 2i+1 of both lists are quad i. `overhead_us` is what was subtracted.
    """

    candidate_us: tuple[float, ...]
    baseline_us: tuple[float, ...]
    overhead_us: float
    foreign_cpu: float
    """Share of one core's time used by other processes of this machine while timing."""
    seconds: float


class Correctness(Frozen):
    """The worst over all compared calls; relative errors are against the rms of the slice."""

    max_absolute_error: float
    max_relative_error: float
    compared: int
    """Calls compared with the baseline's output on the same contents."""
    referenced: int
    """Calls compared with the reference."""


class Measurement(Frozen):
    """One workload's outcome. No statistic is stored: score.py derives them from the raw samples."""

    workload: Workload
    status: Status
    detail: str = ""
    correctness: Correctness | None = None
    method: Literal["judge_clock", "events"] = "judge_clock"
    launches: tuple[Launch, ...] = ()
    bytes_moved: int | None = None
    flops: int | None = None


class Failure(Frozen):
    """Why a candidate failed: at which stage, in words a search can use."""

    stage: Literal["screen", "build", "start", "check", "timing"]
    detail: str
    workload: str | None = None


class Evaluation(Frozen):
    """The judge's verdict on one candidate. `status` is PASSED only if every measurement is."""

    candidate: str
    definition: str
    task_digest: str
    tier: Tier
    lane: str
    device: str
    timing_protocol: str
    status: Status
    failure: Failure | None = None
    measurements: tuple[Measurement, ...] = ()
    log: str = ""
    """What compiler and candidate printed, capped at 64 KiB; opaque, never parsed."""
    sandbox: dict[str, str] = {}
    """The protection that was in force, layer by layer."""
    stages_s: dict[str, float] = {}
    """Seconds spent in each stage: screen, build, start, check, timing."""
    queued_s: float = 0.0
    """Seconds waited for a judge; recorded, never charged."""
    busy: bool = False
    """Other processes used more of the machine than the limit while timing."""


class Job(Frozen):
    """An order to a judge. `heldout` is empty outside the champion tier."""

    task: Task
    candidate: Candidate
    tier: Tier
    heldout: tuple[Workload, ...] = ()


# ---------------------------------------------------------------------------------------------- the trial


class Usage(Frozen):
    """Tokens of model calls; `cached` is part of `input`, `reasoning` part of `output`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


class Budget(Frozen):
    """Hard limits of a trial; None is no limit of that kind."""

    evaluations: int | None = None
    tokens: int | None = None
    usd: float | None = None
    wall_s: float | None = None

    @model_validator(mode="after")
    def _some_limit(self) -> Budget:
        limits = (self.evaluations, self.tokens, self.usd, self.wall_s)
        if all(limit is None for limit in limits) or any(limit is not None and limit <= 0 for limit in limits):
            raise ValueError("a budget needs at least one limit, and every limit must be positive")
        return self


class Spent(Frozen):
    """What a trial has used. Evaluation 0, repeats (`free`) and refunds are counted but not charged."""

    evaluations: int = 0
    free: int = 0
    refunds: int = 0
    calls: int = 0
    usage: Usage = Usage()
    unconfirmed_tokens: int = 0
    """Reserved for calls whose reply was never recorded (the process died in between); charged."""
    usd: float | None = 0.0
    """None: the model's price is not known."""
    wall_s: float = 0.0
    waited_s: float = 0.0
    """Waiting for a judge or for the provider's quota; not part of `wall_s`."""


class Price(Frozen):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None = None


class ModelSpec(Frozen):
    """Which model answers, and how it is asked; the same for every method of a race."""

    provider: Literal["openai", "tuner"]
    name: str
    effort: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_output_tokens: int = 16384
    price: Price | None = None

    @property
    def is_llm(self) -> bool:
        return self.provider != "tuner"


class MethodSpec(Frozen):
    """A method and its options. `target` is "module:Class"; `options` are all fields of its dataclass, resolved."""

    name: str
    target: str
    options: dict[str, JsonValue] = {}
    uses_model: bool = True


class TrialSpec(Frozen):
    """Everything needed to run a trial again; `id` names its folder and its rows everywhere."""

    edition: str
    race: str
    method: MethodSpec
    task: str
    task_digest: str
    brief_digest: str
    lane: str
    device: str
    language: Language
    starter: StarterKind
    model: ModelSpec | None
    """None for a method that asks no model."""
    concurrency: int
    seed: int
    budget: Budget
    timing_protocol: str
    toolchain: dict[str, str]

    @property
    def id(self) -> str:
        parts = (self.method.name, self.task, self.lane, f"s{self.seed}", digest_of(self.model_dump(mode="json"))[:8])
        return "-".join(parts)
