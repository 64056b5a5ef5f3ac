"""A race card: TOML in, a validated `RaceCard` out; every mistake is a `CardError` that names file, key and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, field_validator

from suite.errors import CardError, ModelError
from suite.judge.plan import Timing
from suite.provider import checked
from suite.strict import parse, read_toml
from suite.types import Budget, Frozen, Language, ModelSpec, StarterKind

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""What a race or an edition may be called: it becomes a folder's name."""

MOST_SEEDS = 1000
"""A slip of the keyboard must not fill the memory with trials."""


class MethodEntry(Frozen):
    """One method of the race: its register name or "module:Class", and the options that differ from its defaults."""

    name: str
    options: dict[str, JsonValue] = Field(default_factory=dict)


class RaceCard(Frozen):
    """What is raced: methods x tasks x seeds, on one lane, with one model and one budget for all."""

    edition: str = Field(pattern=NAME)
    name: str = Field(pattern=NAME)
    methods: tuple[MethodEntry, ...] = Field(min_length=1)
    tasks: tuple[str, ...] = Field(min_length=1)
    lane: str = "cpu"
    language: Language = Language.CPP
    starter: StarterKind = StarterKind.PLAIN
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field(default=(0,), min_length=1, max_length=MOST_SEEDS)
    """A count n (seeds 0 to n-1) or the list itself; no larger than what common random generators take."""
    model: ModelSpec | None = None
    budget: Budget
    concurrency: int = Field(default=1, ge=1, le=64)
    """Evaluations and model calls a method may have in flight."""
    judges: int | None = Field(default=None, ge=1)
    """Judges on this machine, two cores each; left out: one for every two cores."""
    trials_at_once: int | None = Field(default=None, ge=1)
    """Trials that run at the same time; left out: four for every judge, since a trial mostly waits for its model."""
    timing: Timing = "standard"
    """How long is timed. Trials timed otherwise carry a protocol of their own and never rank with standard ones."""

    @field_validator("methods", mode="before")
    @classmethod
    def _names_become_entries(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return tuple({"name": one} if isinstance(one, str) else one for one in value)

    @field_validator("seeds", mode="before")
    @classmethod
    def _count_becomes_list(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return tuple(range(min(value, MOST_SEEDS + 1)))
        return tuple(value) if isinstance(value, list) else value

    @field_validator("methods", "tasks", "seeds")
    @classmethod
    def _no_twins(cls, value: tuple[object, ...]) -> tuple[object, ...]:
        if twins := [item for index, item in enumerate(value) if item in value[:index]]:
            shown = twins[0].name if isinstance(twins[0], MethodEntry) else twins[0]
            raise ValueError(f"{shown!r} stands there twice")
        return value


def load_card(path: Path) -> RaceCard:
    """Read the card at `path`. Raises `CardError` for a missing file, bad TOML, an unknown key or a bad value."""
    card = parse(RaceCard, read_toml(path, CardError), str(path), CardError)
    if card.model is not None and card.model.base_url is not None:
        try:
            checked(card.model.base_url)
        except ModelError as flaw:
            raise CardError(f"{path}: {flaw.came}", flaw.expected, flaw.todo) from None
    return card
