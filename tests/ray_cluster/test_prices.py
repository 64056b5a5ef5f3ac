"""A price is the card's, the catalogue's or unknown; never a guess and never 0 for a real model."""

from __future__ import annotations

import json
from pathlib import Path

from ray_cluster.prices import price_of
from suite.types import ModelSpec, Price


def model(**changes: object) -> ModelSpec:
    return ModelSpec.model_validate({"provider": "openai", "name": "gpt-5.2", **changes})


def catalogue(folder: Path, entry: dict[str, object]) -> Path:
    path = folder / "openai.json"
    path.write_text(json.dumps({"models": {"gpt-5.2": entry}}), encoding="utf-8")
    return path


def test_the_card_wins_over_the_catalogue() -> None:
    snapshot = price_of(model(price={"input": 1, "output": 2}))
    assert snapshot.price == Price(input=1, output=2)
    assert snapshot.source == "the race card"


def test_the_catalogue_is_asked_next_and_its_entry_is_kept(tmp_path: Path) -> None:
    pricing = {"input_per_million_tokens": 3, "output_per_million_tokens": 4.5, "cache_read_per_million_tokens": 0.1}
    snapshot = price_of(model(), catalogue(tmp_path, {"pricing": pricing}))
    assert snapshot.price == Price(input=3, output=4.5, cached_input=0.1)
    assert snapshot.entry == {"pricing": pricing}


def test_the_installed_catalogue_knows_common_models() -> None:
    snapshot = price_of(model())
    assert snapshot.price is not None and snapshot.price.input > 0
    assert snapshot.source.startswith("MLflow ")


def test_an_unknown_model_has_no_price() -> None:
    assert price_of(model(name="nobody-knows-me")).price is None


def test_a_model_priced_by_image_has_no_token_price(tmp_path: Path) -> None:
    assert price_of(model(), catalogue(tmp_path, {"pricing": {"per_image": 1}})).price is None
    assert price_of(model(), catalogue(tmp_path, {})).price is None


def test_another_address_is_not_the_catalogues_offer() -> None:
    assert price_of(model(base_url="http://127.0.0.1:8000/v1")).price is None


def test_the_tuner_costs_nothing() -> None:
    assert price_of(ModelSpec(provider="tuner", name="tuner")).price == Price(input=0, output=0)
