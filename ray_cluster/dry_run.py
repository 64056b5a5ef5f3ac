"""`derby run --dry-run`: the trials of a card, what they may cost, what is done. Writes nothing, asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from ray_cluster.console import Exit, data_console, print_json
from ray_cluster.follow import Standing
from ray_cluster.matrix import ResolvedRace, courses, matrix_facts, resolve_race
from ray_cluster.placement_plan import cores_here
from ray_cluster.progress import Progress, State
from ray_cluster.race_card import load_card
from ray_cluster.race_folder import RaceFolder
from ray_cluster.tables import dollars, duration, rows_table
from suite.judge.plan import PLANS, Timing
from suite.types import ModelSpec, Split, Task, Tier

UNTIMED_S = 1.3
"""Seconds for building and checking one candidate of the cpu lane, as a rule of thumb."""
BYTES_PER_TOKEN = 4
"""Of prompts: a rule of thumb, only for an estimate shown to people."""


@dataclass(frozen=True)
class Estimate:
    """The least and the most that the trials still to run can use."""

    calls: int
    tokens: tuple[int, int]
    usd: tuple[float, float] | None
    judge_s: float
    judges: int


def show_plan(path: Path, runs: Path, as_json: bool) -> Exit:
    """Print the matrix, the estimate and what is done."""
    card = load_card(path)
    course = courses(card)
    folder = RaceFolder(runs, card.name)
    race = resolve_race(card, course, folder.price())
    standing = Standing(folder, race.trials)
    standing.update()
    prompt = max((len(one.brief.encode()) + len(one.starter.text().encode()) for one in course.values()), default=0)
    seconds = {name: judge_seconds(one.task, card.timing) for name, one in course.items()}
    plan = estimate(race, standing.rows, prompt // BYTES_PER_TOKEN, seconds, len(cores_here(card.judges)))
    if as_json:
        print_json("plan", **matrix_facts(race), **_document(plan), trial_states=_states(standing.rows))
        return Exit.OK
    console = data_console()
    columns = ("trial", "method", "task", "seed", "state", "evaluations done")
    console.print(rows_table(columns, [_row(trial) for trial in standing.rows]))
    for sentence in _sentences(race, plan):
        console.print(sentence)
    return Exit.OK


def judge_seconds(task: Task, timing: Timing) -> dict[Tier, float]:
    """How long a judge takes about for one candidate of the task."""
    search, champion = PLANS[timing]
    shapes = len(task.split(Split.SEARCH))
    longest = champion.seconds * (shapes + task.heldout.count)
    return {Tier.SEARCH: UNTIMED_S + search.seconds * shapes, Tier.CHAMPION: UNTIMED_S + longest}


def estimate(
    race: ResolvedRace,
    trials: tuple[Progress, ...],
    prompt_tokens: int,
    seconds: Mapping[str, Mapping[Tier, float]],
    judges: int,
) -> Estimate:
    """Calls: one for each evaluation left, which is what a method that asks once for each candidate makes.

    `seconds`: what a judge takes, by task and tier.
    """
    left = {trial.trial: trial for trial in trials if trial.state is not State.FINISHED}
    judge_s, calls, low, high = 0.0, 0, 0, 0
    for spec in race.trials:
        if (trial := left.get(spec.id)) is None:
            continue
        rest = (spec.budget.evaluations or 0) - trial.spent.evaluations
        judge_s += rest * seconds[spec.task][Tier.SEARCH] + seconds[spec.task][Tier.CHAMPION]
        if spec.model is not None:
            calls += rest
            bound = rest * (prompt_tokens + spec.model.max_output_tokens)
            tokens_left = None if spec.budget.tokens is None else spec.budget.tokens - trial.spent.usage.total
            high += bound if tokens_left is None else min(bound, tokens_left) if rest else tokens_left
            low += rest * prompt_tokens if tokens_left is None else min(rest * prompt_tokens, tokens_left)
    usd = _dollars(race.trials[0].model if race.trials else None, race, (low, high), calls)
    return Estimate(calls, (low, high), usd, judge_s / judges, judges)


def _dollars(
    model: ModelSpec | None, race: ResolvedRace, tokens: tuple[int, int], calls: int
) -> tuple[float, float] | None:
    """From all tokens being input to all above the prompts being output; None: the price is not known."""
    if race.card.model is None or calls == 0:
        return (0.0, 0.0)
    price = race.price.price if race.price is not None else None
    if price is None:
        return None
    low, high = tokens
    most = (low * price.input + (high - low) * price.output) / 1e6
    if race.card.budget.usd is not None:
        most = min(most, race.card.budget.usd * len(race.trials))
    return (min(low * price.input / 1e6, most), most)


def _row(trial: Progress) -> tuple[str, ...]:
    done = f"{trial.spent.evaluations}"
    return trial.trial, trial.method, trial.task, str(trial.seed), trial.state.value, done


def _states(trials: tuple[Progress, ...]) -> list[JsonValue]:
    return [{"trial": trial.trial, "state": trial.state.value, "done": trial.spent.evaluations} for trial in trials]


def _document(plan: Estimate) -> dict[str, JsonValue]:
    return {
        "calls": plan.calls,
        "tokens": list(plan.tokens),
        "usd": None if plan.usd is None else list(plan.usd),
        "judge_s": plan.judge_s,
        "judges": plan.judges,
    }


def _sentences(race: ResolvedRace, plan: Estimate) -> list[str]:
    cost = "at an unknown price" if plan.usd is None else f"{dollars(plan.usd[0])} to {dollars(plan.usd[1])}"
    source = f" (price: {race.price.source})" if race.price is not None else ""
    return [
        f"{len(race.trials)} trials on {race.device}",
        f"about {plan.calls} model calls, {plan.tokens[0]} to {plan.tokens[1]} tokens, {cost}{source}",
        f"about {duration(plan.judge_s)} of judging with {plan.judges} judge{'s' if plan.judges > 1 else ''}",
    ]
