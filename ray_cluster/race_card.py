"""A race card: TOML in, a validated `RaceCard` out; every mistake is a `CardError` that names file, key and remedy."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, JsonValue, ValidationError, field_validator

from suite.errors import CardError
from suite.types import Budget, Frozen, Language, ModelSpec, StarterKind

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""What a race or an edition may be called: it becomes a folder's name."""


class MethodEntry(Frozen):
    """One method of the race: its register name or "module:Class", and the options that differ from its defaults."""

    name: str
    options: dict[str, JsonValue] = {}


def _as_entry(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def _as_seeds(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise ValueError(f"a count of seeds must be at least 1, not {value}")
        return list(range(value))
    return value


class RaceCard(Frozen):
    """What is raced: methods x tasks x seeds, on one lane, with one model and one budget for all."""

    edition: str = Field(pattern=NAME)
    name: str = Field(pattern=NAME)
    methods: tuple[Annotated[MethodEntry, BeforeValidator(_as_entry)], ...] = Field(min_length=1)
    tasks: tuple[str, ...] = Field(min_length=1)
    lane: str = "cpu"
    language: Language = Language.CPP
    starter: StarterKind = StarterKind.PLAIN
    seeds: Annotated[tuple[int, ...], BeforeValidator(_as_seeds)] = Field(default=(0,), min_length=1)
    """A count n (seeds 0 to n-1) or the list itself."""
    model: ModelSpec | None = None
    budget: Budget
    concurrency: int = Field(default=1, ge=1, le=64)
    """Evaluations and model calls a method may have in flight."""
    judges: int | None = Field(default=None, ge=1)
    """Judges on this machine, two cores each; left out: one for every two cores."""
    trials_at_once: int | None = Field(default=None, ge=1)
    """Trials that run at the same time; left out: four for every judge, since a trial mostly waits for its model."""
    timing: Literal["standard", "tiny"] = "standard"
    """"tiny" times a few calls only, for tests; its trials carry a protocol of their own and never rank with others."""

    @field_validator("methods", "tasks", "seeds")
    @classmethod
    def _no_twins(cls, value: tuple[object, ...]) -> tuple[object, ...]:
        if twins := [item for index, item in enumerate(value) if item in value[:index]]:
            shown = twins[0].name if isinstance(twins[0], MethodEntry) else twins[0]
            raise ValueError(f"{shown!r} stands there twice")
        return value


def load_card(path: Path) -> RaceCard:
    """Read the card at `path`. Raises `CardError` for a missing file, bad TOML, an unknown key or a bad value."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CardError(
            f"{path} cannot be read: {error}",
            "the path of a race card, a TOML file",
            "check the path; `derby list races` shows the cards that come with the suite",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"{path} is not valid TOML: {error}", "a TOML file", "correct the place named above") from error
    try:
        return RaceCard.model_validate(data)
    except ValidationError as error:
        raise _card_error(path, error) from error


def _card_error(path: Path, error: ValidationError) -> CardError:
    """The first mistake pydantic found, in our three parts; the number of the others is told."""
    # Unknown keys first: a misspelt key is also a missing one, and the spelling is what helps.
    mistakes = sorted(error.errors(include_url=False), key=lambda item: item["type"] != "extra_forbidden")
    first, *others = mistakes
    location = tuple(part for part in first["loc"] if part not in ("MethodEntry", "ModelSpec", "Budget"))
    key = _dotted(location)
    more = f" (and {len(others)} more mistake{'s' if len(others) > 1 else ''})" if others else ""
    if first["type"] == "extra_forbidden":
        known = known_keys(location[:-1])
        return CardError(
            f"{path}: the key `{key}` is unknown{more}",
            f"one of {', '.join(known)}",
            _remedy(str(location[-1]), known, key),
        )
    if first["type"] == "missing":
        return CardError(
            f"{path}: the key `{key}` is missing{more}", f"a value for `{key}`", f"add `{key}` to the card"
        )
    message = first["msg"].removeprefix("Value error, ")
    came = f"{path}: `{key}` = {first['input']!r}" if location else f"{path}"
    return CardError(f"{came}: {message}{more}", _wanted(location, message), f"correct `{key}` in {path.name}")


def _dotted(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _remedy(bad: str, known: tuple[str, ...], key: str) -> str:
    near = difflib.get_close_matches(bad, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"take `{key}` out of the card"


def known_keys(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """Names of the keys admitted in the card's table at `location` (empty: the card itself)."""
    model: type[BaseModel] = RaceCard
    for part in location:
        if isinstance(part, str):
            model = _models_in(model.model_fields[part].annotation)[0]
    return tuple(model.model_fields)


def _models_in(annotation: object) -> list[type[BaseModel]]:
    """The record types named anywhere inside a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models_in(argument)]


def _wanted(location: tuple[int | str, ...], message: str) -> str:
    """What the key is for, where the card's own text can say more than the message does."""
    hints = {
        "seeds": "a count (seeds = 5) or a list of whole numbers (seeds = [1, 2, 3])",
        "methods": 'names or tables: methods = ["tpe", { name = "best_of_n", options = {} }]',
        "budget": "at least one of evaluations, tokens, usd, wall_s, each positive",
        "name": "letters, digits, dot, dash and underscore, since it names a folder",
        "edition": "letters, digits, dot, dash and underscore, since it names a folder",
    }
    return hints.get(str(location[0]) if location else "", message)
