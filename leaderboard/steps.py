"""Best-so-far curves as step functions of what was spent; over seeds their median and range. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leaderboard import words
from leaderboard.records import Attempt, State, TrialRecord

Axis = Literal["evaluations", "tokens", "USD", "wall seconds"]
AXES: tuple[Axis, ...] = ("evaluations", "tokens", "USD", "wall seconds")
TITLES: dict[Axis, str] = {
    "evaluations": "evaluations (0: the starter)",
    "tokens": "tokens of model calls, input + output",
    "USD": "USD for model calls",
    "wall seconds": "wall seconds charged",
}
OPTIONAL: dict[Axis, str] = {"tokens": "no tokens", "USD": "no dollars"}
"""What a method may do without, which leaves its candidates at 0."""

Numbers = NDArray[np.float64]


def at(attempt: Attempt, axis: Axis) -> float:
    """What the trial had used when this verdict came; dollars are asked for priced trials only."""
    spent = attempt.spent
    values: dict[Axis, float] = {
        "evaluations": float(attempt.number),
        "tokens": float(spent.usage.total),
        "USD": spent.usd or 0.0,
        "wall seconds": spent.wall_s,
    }
    return values[axis]


def drawable(trial: TrialRecord, axis: Axis) -> bool:
    """Whether the trial has a place on the axis: none on that of dollars while its model's price is unknown."""
    return axis != "USD" or trial.spent.usd is not None


def used(trials: Iterable[TrialRecord], axis: Axis) -> float:
    """The largest value on the axis of all candidates that have a place there; 0 without any."""
    return max((at(one.attempts[-1], axis) for one in trials if one.attempts and drawable(one, axis)), default=0.0)


@dataclass(frozen=True)
class Spread:
    """The best so far of a method over its seeds: at each `x` the median and the range. The last `x` is its end."""

    x: tuple[float, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    seeds: int


def spread(trials: Sequence[TrialRecord], axis: Axis) -> Spread | None:
    """Over all trials with a place on the axis; None if none has.

    The curve begins where every trial has judged its starter. A finished trial keeps its best to the right of its end;
    an unfinished one has no best there yet, so that the curve ends where the slowest unfinished trial stands.
    """
    shown = [trial for trial in trials if trial.attempts and drawable(trial, axis)]
    if not shown:
        return None
    xs = [np.array([at(attempt, axis) for attempt in trial.attempts]) for trial in shown]
    start = max(float(places[0]) for places in xs)
    ends = [float(places[-1]) for trial, places in zip(shown, xs, strict=True) if trial.state != State.FINISHED]
    end = max(start, min(ends, default=max(float(places[-1]) for places in xs)))
    grid = np.unique(np.concatenate([*xs, [start, end]]))
    grid = grid[(grid >= start) & (grid <= end)]
    best = np.array([_best(trial, places, grid) for trial, places in zip(shown, xs, strict=True)])
    return _thinned(grid, best)


def _best(trial: TrialRecord, places: Numbers, grid: Numbers) -> Numbers:
    """The trial's best so far at each place of the grid."""
    values = np.array([attempt.best for attempt in trial.attempts])
    return np.asarray(values[np.searchsorted(places, grid, side="right") - 1])


def _thinned(grid: Numbers, best: Numbers) -> Spread:
    """Without the places at which nothing changes, which thousands of candidates have."""
    rows = np.array([np.median(best, axis=0), best.min(axis=0), best.max(axis=0)])
    kept = np.ones(len(grid), dtype=bool)
    kept[1:-1] = (rows[:, 1:-1] != rows[:, :-2]).any(axis=0)
    median, low, high = (tuple(row[kept].tolist()) for row in rows)
    return Spread(tuple(grid[kept].tolist()), median, low, high, len(best))


Methods = Sequence[tuple[str, Sequence[TrialRecord]]]
"""What a row is called, and its trials."""


def remarks(methods: Methods, axis: Axis) -> list[str]:
    """What a reader of the chart must know: who is missing and why, who has used none of this."""
    found = []
    for label, trials in methods:
        missing = [trial for trial in trials if not drawable(trial, axis)]
        if missing:
            priceless = ", ".join(sorted({words.model(trial.spec.model) for trial in missing}))
            count = f"{len(missing)} of {len(trials)} trials"
            found.append(f"{label}: {count} not drawn, the price of {priceless} is unknown.")
        elif axis in OPTIONAL and trials and used(trials, axis) == 0:
            found.append(f"{label} has used {OPTIONAL[axis]}: it stands at 0, its line shows what that led to.")
    return found


def nothing(methods: Methods, axis: Axis) -> str | None:
    """Why there is nothing to draw against this axis, None if there is."""
    everyone = [trial for _, trials in methods for trial in trials]
    if axis not in OPTIONAL or not everyone or used(everyone, axis) > 0:
        return None
    priceless = [trial for trial in everyone if not drawable(trial, axis)]
    if priceless:
        names = ", ".join(sorted({words.model(trial.spec.model) for trial in priceless}))
        return f"The price of {names} is unknown, so there is nothing to draw against dollars."
    return f"There is nothing to draw: no candidate shown here has used {OPTIONAL[axis].replace('no ', 'any ')}."
