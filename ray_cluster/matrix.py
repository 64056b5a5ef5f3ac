"""From a race card to its trials: methods x tasks x seeds, with everything resolved that decides a result."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from ray_cluster.find import find_task
from ray_cluster.foreign import resolve_method
from ray_cluster.prices import PriceSnapshot, price_of
from ray_cluster.race_card import RaceCard
from suite.brief import brief
from suite.environment import cpu_model, toolchain
from suite.errors import CardError
from suite.judge.plan import protocol
from suite.task import starter
from suite.types import Candidate, Frozen, MethodSpec, ModelSpec, Task, TrialSpec, digest_of


class ResolvedRace(Frozen):
    """A card with its price, its methods' full options and its trials; stored in the race folder as card.json."""

    schema_version: int = 1
    card: RaceCard
    price: PriceSnapshot | None
    methods: tuple[MethodSpec, ...]
    tasks: dict[str, str]
    """Name -> digest."""
    briefs: dict[str, str]
    starters: dict[str, str]
    """Task -> candidate id of evaluation 0."""
    device: str
    toolchain: dict[str, str]
    trials: tuple[TrialSpec, ...]


@dataclass(frozen=True)
class Course:
    """A task as this race runs it."""

    task: Task
    starter: Candidate
    brief: str


def courses(card: RaceCard) -> dict[str, Course]:
    """The card's tasks by name, loaded for its lane and language. Raises `UserError` for an unknown or unfit one."""
    found = {}
    for name in card.tasks:
        task = find_task(name, card.lane)
        if card.language not in task.languages:
            raise CardError(
                f"{name} cannot be raced in {card.language} on the lane {card.lane!r}",
                f"one of {', '.join(task.languages)}",
                "correct `language` or `lane` in the card",
            )
        found[task.name] = Course(task, starter(task, card.language, card.starter), brief(task, card.language))
    return found


def resolve_race(card: RaceCard, course: dict[str, Course], stored: PriceSnapshot | None = None) -> ResolvedRace:
    """All trials of a card. `stored`: the price snapshot of a race already begun: no newer catalogue changes it."""
    methods = tuple(resolve_method(entry.name, entry.options) for entry in card.methods)
    price = None if card.model is None else stored or price_of(card.model)
    _model_where_needed(card, methods)
    _budget_that_binds(card, methods, price)
    race = ResolvedRace(
        card=card,
        price=price,
        methods=methods,
        tasks={name: one.task.digest for name, one in course.items()},
        briefs={name: digest_of(one.brief) for name, one in course.items()},
        starters={name: one.starter.id for name, one in course.items()},
        device=cpu_model(),
        toolchain=toolchain(),
        trials=(),
    )
    return race.model_copy(update={"trials": _trials(race)})


def _model_where_needed(card: RaceCard, methods: tuple[MethodSpec, ...]) -> None:
    asking = [method.name for method in methods if method.uses_model]
    if asking and card.model is None:
        raise CardError(
            f"the card has no [model], but {', '.join(asking)} asks one",
            'a table [model] with provider and name, e.g. provider = "tuner", name = "tuner"',
            "add the table",
        )


def _budget_that_binds(card: RaceCard, methods: tuple[MethodSpec, ...], price: PriceSnapshot | None) -> None:
    budget, free = card.budget, [method.name for method in methods if not method.uses_model]
    if budget.usd is not None and len(free) < len(methods) and (price is None or price.price is None):
        raise CardError(
            "a budget in US dollars, but the model's price is not known",
            "price = { input = ..., output = ... } in [model], in US dollars per million tokens",
            "state the price, or set a budget of tokens instead",
        )
    if free and budget.evaluations is None and budget.wall_s is None:
        raise CardError(
            f"{', '.join(free)} asks no model, so a budget of tokens or dollars never ends it",
            "evaluations or wall_s in [budget]",
            "add one of them",
        )


def _trials(race: ResolvedRace) -> tuple[TrialSpec, ...]:
    """Seed by seed, so that an early look at a race has every method on every task."""
    card = race.card
    model = _priced(card.model, race.price)
    return tuple(
        TrialSpec(
            edition=card.edition,
            race=card.name,
            method=method,
            task=name,
            task_digest=race.tasks[name],
            brief_digest=race.briefs[name],
            lane=card.lane,
            device=race.device,
            language=card.language,
            starter=card.starter,
            model=model if method.uses_model else None,
            concurrency=card.concurrency,
            seed=seed,
            budget=card.budget,
            timing_protocol=protocol(card.timing),
            toolchain=race.toolchain,
        )
        for seed in card.seeds
        for name in race.tasks
        for method in race.methods
    )


def _priced(model: ModelSpec | None, price: PriceSnapshot | None) -> ModelSpec | None:
    return model.model_copy(update={"price": price.price}) if model is not None and price is not None else model


def matrix_facts(race: ResolvedRace) -> dict[str, JsonValue]:
    """What a reader wants to know of the matrix at a glance."""
    return {
        "edition": race.card.edition,
        "race": race.card.name,
        "methods": [method.name for method in race.methods],
        "tasks": list(race.tasks),
        "seeds": list(race.card.seeds),
        "trials": len(race.trials),
        "timing_protocol": protocol(race.card.timing),
    }
