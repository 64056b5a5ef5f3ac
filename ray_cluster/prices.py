"""The price of a model: the card's, else the one in the catalogue that MLflow carries; a snapshot stays with the race.

The catalogue is read as a file, so that no command has to import MLflow for it. What is unknown stays unknown: never 0.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from pathlib import Path

from pydantic import Field, JsonValue

from suite.types import Frozen, ModelSpec, Price


class PriceSnapshot(Frozen):
    """Which price a race charges and where it is from, kept so that a later catalogue cannot change a race."""

    model: str
    price: Price | None
    source: str
    entry: dict[str, JsonValue] = Field(default_factory=dict)
    """The catalogue's whole entry: service tiers and long-context surcharges, which the race does not apply."""


def price_of(model: ModelSpec, catalogue: Path | None = None) -> PriceSnapshot:
    """The price in force for `model`. `catalogue`: a JSON file in the form of MLflow's (default: the installed one)."""
    if not model.is_llm:
        return PriceSnapshot(model=model.name, price=Price(input=0, output=0), source="a stand-in here is free")
    if model.price is not None:
        return PriceSnapshot(model=model.name, price=model.price, source="the race card")
    if model.base_url is not None:
        # The same name at another address is another offer: the catalogue says nothing about it.
        return PriceSnapshot(model=model.name, price=None, source="unknown: another address than the provider's own")
    path = catalogue or _installed(model.provider)
    entry = _entry(path, model.name) if path else None
    if path is None or entry is None:
        return PriceSnapshot(model=model.name, price=None, source="unknown: not in MLflow's catalogue")
    return PriceSnapshot(model=model.name, price=_price(entry), source=f"MLflow {_version()} {path.name}", entry=entry)


def _installed(provider: str) -> Path | None:
    spec = importlib.util.find_spec("mlflow")  # finds the folder without running the package
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "utils" / "model_catalog" / f"{provider}.json"
    return path if path.is_file() else None


def _version() -> str:
    try:
        return importlib.metadata.version("mlflow")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _entry(path: Path, name: str) -> dict[str, JsonValue] | None:
    found = json.loads(path.read_text(encoding="utf-8")).get("models", {}).get(name)
    return found if isinstance(found, dict) else None


def _price(entry: dict[str, JsonValue]) -> Price | None:
    """Dollars per million tokens of a catalogue entry; None when it prices something else than tokens."""
    table = entry.get("pricing")
    if not isinstance(table, dict):
        return None
    found = [table.get(f"{kind}_per_million_tokens") for kind in ("input", "output", "cache_read")]
    into, out, cached = (float(value) if isinstance(value, int | float) else None for value in found)
    return None if into is None or out is None else Price(input=into, output=out, cached_input=cached)
