"""What a trial is and what it may spend: usage, budgets, models, methods, and the identity that joins them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from suite.types.base import Frozen, Language, StarterKind, digest_of


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
    usd: float | None = Field(default=None, allow_inf_nan=False)
    wall_s: float | None = Field(default=None, allow_inf_nan=False)

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

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ModelSpec(Frozen):
    """Which model answers, and how it is asked; the same for every method of a race."""

    provider: Literal["openai", "tuner"]
    name: str = Field(min_length=1)
    effort: str | None = None
    base_url: str | None = None
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_output_tokens: int = Field(default=16384, gt=0)
    price: Price | None = None

    @property
    def is_llm(self) -> bool:
        return self.provider != "tuner"


class MethodSpec(Frozen):
    """A method and its options. `target` is "module:Class"; `options` are all fields of its dataclass, resolved."""

    name: str
    target: str
    options: dict[str, JsonValue] = Field(default_factory=dict)
    uses_model: bool = True


class Prediction(Frozen):
    """What a method expected of a candidate before it was judged; None: it did not say."""

    speedup: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Expected speedup over the baseline, on the scale of an evaluation's score."""
    value: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """How promising the method called it, on a scale of its own from 0 to 1."""


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
