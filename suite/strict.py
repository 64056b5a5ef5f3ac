"""Reads TOML into a pydantic model; every flaw becomes a user error in three parts, with the nearest known key."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from suite.errors import UserError

M = TypeVar("M", bound=BaseModel)


def nearest(word: str, known: Iterable[str]) -> str:
    """The sentence that helps after a misspelt word: the closest known one, or the advice to remove it."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"remove {word!r}"


def read_toml(path: Path, error: type[UserError]) -> dict[str, Any]:
    """The file's content. Raises `error` when it is missing, unreadable or no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"there is no {path}", f"a file {path.name}", "check the path") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{path} can not be read: {problem}", "a UTF-8 text file", "check its permissions") from None
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{path} is not TOML: {problem}", "a TOML file", "correct that line") from None


def parse(model: type[M], data: dict[str, Any], where: str, error: type[UserError]) -> M:
    """`data` as a `model`. Raises `error` about one flaw; `where` names the file."""
    try:
        # By way of JSON, whose strict rules fit a file: a list becomes a tuple, but "3" or true never a number.
        return model.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as problem:
        # An unknown key first: often it is the missing one, misspelt.
        first = min(problem.errors(), key=lambda flaw: flaw["type"] != "extra_forbidden")
        raise _explain(model, first, where, error) from None


def _explain(model: type[BaseModel], flaw: ErrorDetails, where: str, error: type[UserError]) -> UserError:
    path = [str(part) for part in flaw["loc"]]
    place = ".".join(path) or "the whole file"
    if flaw["type"] == "extra_forbidden":
        known = _known_keys(model, path[:-1])
        return error(f"{where}: unknown key {place}", f"one of {', '.join(known)}", nearest(path[-1], known))
    if flaw["type"] == "missing":
        return error(f"{where}: {place} is missing", f"the key {place}", "add it")
    return error(f"{where}: {place} = {flaw['input']!r}"[:300], flaw["msg"], f"correct {place}")


def _known_keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """Field names of the model found by following `path` through fields, dict keys and list indices."""
    here: Any = model
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            here = here.model_fields[part].annotation
        else:  # dict[str, X], tuple[X, ...], X | None: one step inwards
            here = next((kind for kind in reversed(get_args(here)) if kind not in (..., type(None))), here)
        # An optional field takes no step of the path.
        if type(None) in get_args(here):
            here = next(kind for kind in get_args(here) if kind is not type(None))
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []
