"""A card becomes methods x tasks x seeds, with everything in a trial's identity that decides its result."""

from __future__ import annotations

import pytest

from ray_cluster.matrix import courses, matrix_facts, resolve_race
from ray_cluster.prices import PriceSnapshot
from suite.errors import CardError, MethodError, TaskError
from suite.types import TIMING_PROTOCOL, Price
from tests.ray_cluster.stage import card


def test_every_method_meets_every_task_on_every_seed() -> None:
    one = card(seeds=3)
    race = resolve_race(one, courses(one))
    assert [(trial.method.name, trial.seed) for trial in race.trials] == [
        (method, seed) for seed in (0, 1, 2) for method in ("best_of_n", "tpe")
    ]
    assert len({trial.id for trial in race.trials}) == 6
    assert matrix_facts(race)["trials"] == 6


def test_resolving_twice_gives_the_same_trials() -> None:
    one = card()
    assert resolve_race(one, courses(one)) == resolve_race(one, courses(one))


def test_a_method_without_a_model_carries_none() -> None:
    one = card()
    asking = {trial.method.name: trial.model is not None for trial in resolve_race(one, courses(one)).trials}
    assert asking == {"best_of_n": True, "tpe": False}


def test_tiny_timing_is_a_protocol_of_its_own() -> None:
    tiny, standard = card(), card(timing="standard")
    assert resolve_race(tiny, courses(tiny)).trials[0].timing_protocol == f"{TIMING_PROTOCOL}-tiny"
    assert resolve_race(standard, courses(standard)).trials[0].timing_protocol == TIMING_PROTOCOL


def test_options_are_resolved_with_their_defaults() -> None:
    one = card(methods=["tpe"])
    assert resolve_race(one, courses(one)).trials[0].method.options


def test_a_stored_price_wins_over_the_catalogue() -> None:
    one = card(model={"provider": "openai", "name": "gpt-5.2"})
    stored = PriceSnapshot(model="gpt-5.2", price=Price(input=99, output=99), source="an earlier run")
    model = resolve_race(one, courses(one), stored).trials[0].model
    assert model is not None and model.price == Price(input=99, output=99)


def test_a_method_that_asks_needs_a_model_on_the_card() -> None:
    one = card(model=None)
    with pytest.raises(CardError, match="best_of_n asks one"):
        resolve_race(one, courses(one))
    silent = card(model=None, methods=["tpe"])
    assert resolve_race(silent, courses(silent)).price is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"tasks": ["gqa_paged_decode"]}, TaskError, "gqa_paged_decode_h32_kv4_d128_ps1"),
        ({"language": "cuda"}, CardError, "cannot be raced in cuda"),
        ({"lane": "sm12"}, TaskError, "lane"),
        ({"methods": ["best_of_m"]}, MethodError, "best_of_n"),
        ({"methods": [{"name": "tpe", "options": {"patiens": 1}}]}, MethodError, "patience"),
        ({"tasks": ["x" * 5000]}, TaskError, "there is no task"),
        ({"budget": {"tokens": 1000}}, CardError, "tpe asks no model"),
        (
            {
                "budget": {"usd": 1.0, "evaluations": 3},
                "model": {"provider": "openai", "name": "m", "base_url": "http://x/v1"},
            },
            CardError,
            "price is not known",
        ),
    ],
)
def test_what_cannot_be_raced_is_refused(changes: dict[str, object], error: type[Exception], message: str) -> None:
    one = card(**changes)
    with pytest.raises(error, match=message):
        resolve_race(one, courses(one))
