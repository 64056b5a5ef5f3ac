"""What a method expected of its candidates beside what was measured: pairs, agreement, and the figure. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Literal

import plotly.graph_objects as go
from scipy import stats

from leaderboard import charts, words
from leaderboard.charts import BASELINE, GREY, colours
from leaderboard.records import Attempt, TrialRecord
from suite.types import Status

Scale = Literal["speedup", "own score"]
"""A predicted speedup is on the scale of what is measured; a method's own score, 0 to 1, is not."""

MIN_FOR_RANKS = 3


@dataclass(frozen=True)
class Pair:
    """A candidate with a prediction; `measured` is its search-time speedup, None if it failed."""

    number: int
    predicted: float
    measured: float | None
    status: Status
    interval: str


def scales(trial: TrialRecord) -> tuple[Scale, ...]:
    """On which scales the trial has predictions."""
    names: tuple[Scale, ...] = ("speedup", "own score")
    return tuple(scale for scale in names if pairs(trial, scale))


def pairs(trial: TrialRecord, scale: Scale = "speedup") -> tuple[Pair, ...]:
    """Every candidate that the method had predicted on this scale, in order of evaluation."""
    return tuple(
        _pair(attempt, value) for attempt in trial.attempts if (value := _predicted(attempt, scale)) is not None
    )


def _predicted(attempt: Attempt, scale: Scale) -> float | None:
    if attempt.predicted is None:
        return None
    return attempt.predicted.speedup if scale == "speedup" else attempt.predicted.value


def _pair(attempt: Attempt, value: float) -> Pair:
    passed = attempt.status == Status.PASSED
    measured = attempt.score.value if passed else None
    return Pair(
        attempt.number, value, measured, attempt.status, words.interval(attempt.score) if passed else words.NONE
    )


def rank_correlation(found: Sequence[Pair], failures: bool) -> tuple[float | None, int]:
    """Spearman's rho of predicted and measured, and of how many candidates; `failures` count as slowest, or not at all.

    None for fewer than three candidates, and where one side is the same for all of them.
    """
    kept = [(pair.predicted, pair.measured or 0.0) for pair in found if failures or pair.measured is not None]
    predicted, measured = [first for first, _ in kept], [second for _, second in kept]
    if len(kept) < MIN_FOR_RANKS or len(set(predicted)) == 1 or len(set(measured)) == 1:
        return None, len(kept)
    return float(stats.spearmanr(predicted, measured).statistic), len(kept)


def mean_ratio(found: Sequence[Pair]) -> tuple[float | None, int]:
    """Geometric mean of measured / predicted speedup, and of how many; below 1 the method was too hopeful.

    Over what passed and was predicted to be faster than 0.
    """
    ratios = [pair.measured / pair.predicted for pair in found if pair.measured and pair.predicted > 0]
    return (geometric_mean(ratios) if ratios else None), len(ratios)


def summary(found: Sequence[Pair], scale: Scale) -> list[str]:
    """The agreement in words, a sentence each."""
    passed = sum(pair.measured is not None for pair in found)
    parts = [f"{len(found)} candidates were predicted; {passed} of them passed.", _rho(found, False), _rho(found, True)]
    ratio, count = mean_ratio(found) if scale == "speedup" else (None, 0)
    if ratio is not None:
        lean = "too hopeful" if ratio < 1 else "too modest" if ratio > 1 else "right on average"
        parts.append(f"Measured / predicted speedup, geometric mean of {count}: {words.three(ratio)} ({lean}).")
    return parts


def _rho(found: Sequence[Pair], failures: bool) -> str:
    rho, count = rank_correlation(found, failures)
    which = "with failures counted as slowest" if failures else "of those that passed"
    value = "cannot be given" if rho is None else f"{rho:+.2f}"
    return f"Rank correlation (Spearman) {which}: {value} (n = {count})."


def figure(method: str, found: Sequence[Pair], scale: Scale) -> go.Figure:
    """Predicted against measured; the diagonal is a perfect forecast, failures stand on the lower rim."""
    colour = colours([method])[method]
    on_log = [pair.predicted for pair in found if pair.predicted > 0] if scale == "speedup" else []
    low, high = _reach([pair.measured for pair in found if pair.measured] + on_log)
    shown = go.Figure([_diagonal(low, high)] if scale == "speedup" else [])
    cross = {"symbol": "x-thin", "size": 10, "line": {"width": 2, "color": GREY}}
    for name, marker in (("passed", {"color": colour, "size": 9}), ("failed, no speed", cross)):
        some = [pair for pair in found if bool(pair.measured) == (name == "passed")]
        # A predicted 0 has no place on a logarithmic axis but its rim.
        places = [pair.predicted or low if scale == "speedup" else pair.predicted for pair in some]
        shown.add_trace(_dots(some, places, low, marker).update(name=name))
    shown.add_hline(y=1.0, line=BASELINE)
    # Annotations take the logarithm of a place, lines the place itself.
    shown.add_annotation(text="baseline", x=0, xref="paper", xanchor="left", y=0, yanchor="bottom", showarrow=False)
    _axes(shown, scale, low, high)
    return charts.dressed(shown, height=460, legend=True)


def _axes(shown: go.Figure, scale: Scale, low: float, high: float) -> None:
    ticks = _ticks(low, high)
    log = {"type": "log", "range": [math.log10(low), math.log10(high)]}
    log |= {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    shown.update_yaxes(title_text="measured search-time speedup<br>over the baseline (×)", **log)
    if scale == "speedup":
        shown.update_xaxes(title_text="speedup over the baseline the method predicted (×)", **log)
    else:
        shown.update_xaxes(title_text="how promising the method called it (its own score, 0 to 1)", range=[-0.03, 1.03])


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """Bounds of an axis with all values and the baseline well within them."""
    return min([*values, 1.0]) / 1.35, max([*values, 1.0]) * 1.35


def _ticks(low: float, high: float) -> list[float]:
    steps = (1, 2, 5) if high / low < 200 else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in decades for step in steps if low <= step * 10.0**power <= high]


def _diagonal(low: float, high: float) -> go.Scatter:
    line = {"color": GREY, "width": 1.5}
    return go.Scatter(x=[low, high], y=[low, high], mode="lines", line=line, name="as predicted", hoverinfo="skip")


def _dots(found: Sequence[Pair], places: Sequence[float], rim: float, marker: dict[str, object]) -> go.Scatter:
    return go.Scatter(
        x=places,
        y=[pair.measured or rim for pair in found],
        mode="markers",
        marker=marker,
        cliponaxis=False,  # failures lie on the rim
        customdata=[[pair.number, pair.status.value, pair.interval, words.three(pair.predicted)] for pair in found],
        hovertemplate="candidate %{customdata[0]}<br>%{customdata[1]}<br>predicted %{customdata[3]}<br>"
        "measured %{customdata[2]} ×<extra></extra>",
    )
