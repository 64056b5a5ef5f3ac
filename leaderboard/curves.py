"""Trial records -> convergence figures: one trial, every trial, or methods by median and range. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from leaderboard import charts, words
from leaderboard.charts import BASELINE, GREY, colours
from leaderboard.records import Attempt, TrialRecord
from leaderboard.steps import TITLES, Axis, Spread, at, drawable, spread
from suite.types import Status

DASHES = ("solid", "dash", "dashdot", "longdash")
"""Tells rows apart that differ in options only and so share a colour."""


@dataclass(frozen=True)
class Method:
    """A row of a table with the trials its numbers are made of."""

    label: str
    name: str
    trials: tuple[TrialRecord, ...]


def methods(rows: Sequence[Method], axis: Axis = "evaluations") -> go.Figure:
    """Median over seeds as steps in a band from worst to best seed; dotted beyond the method's own end."""
    found = [(row, spread(row.trials, axis)) for row in rows]
    far = max((line.x[-1] for _, line in found if line), default=0.0)
    palette = colours(row.name for row in rows)
    figure = go.Figure()
    named: list[str] = []
    for row, line in found:
        if line is None:
            continue
        dash = DASHES[named.count(row.name) % len(DASHES)]
        named.append(row.name)
        figure.add_traces(_band(row, line, palette[row.name]))
        figure.add_trace(_median(row, line, axis, {"color": palette[row.name], "dash": dash}))
        if line.x[-1] < far:
            figure.add_trace(_tail(row, line, far, palette[row.name]))
    return _ground(figure, axis, height=340)


def _band(row: Method, line: Spread, colour: str) -> list[go.Scatter]:
    edge = {"mode": "lines", "line": {"shape": "hv", "width": 0}, "hoverinfo": "skip", "showlegend": False}
    low = go.Scatter(x=line.x, y=_shown(line.low), name=f"{row.label}, worst", legendgroup=row.label, **edge)
    fill = {"fill": "tonexty", "fillcolor": charts.faint(colour, 0.16)}
    high = go.Scatter(x=line.x, y=_shown(line.high), name=f"{row.label}, best", legendgroup=row.label, **fill, **edge)
    return [low, high]


def _median(row: Method, line: Spread, axis: Axis, style: dict[str, str]) -> go.Scatter:
    seeds = "1 seed" if line.seeds == 1 else f"median of {line.seeds} seeds"
    ranges = [f"{words.three(low)} – {words.three(high)}" for low, high in zip(line.low, line.high, strict=True)]
    return go.Scatter(
        x=line.x,
        y=_shown(line.median),
        mode="lines+markers" if len(line.x) == 1 else "lines",
        line={"shape": "hv", "width": 2, **style},
        name=row.label,
        legendgroup=row.label,
        customdata=ranges,
        hovertemplate=f"{row.label}, {seeds}<br>%{{x:,.4~r}} {axis}: %{{y:.3g}} × (%{{customdata}})<extra></extra>",
    )


def _tail(row: Method, line: Spread, far: float, colour: str) -> go.Scatter:
    last = _shown(line.median)[-1]
    return go.Scatter(
        x=[line.x[-1], far],
        y=[last, last],
        mode="lines",
        line={"color": colour, "width": 1.5, "dash": "dot"},
        name=f"{row.label}, ended",
        legendgroup=row.label,
        showlegend=False,
        hoverinfo="skip",
    )


def every_trial(trials: Sequence[TrialRecord], axis: Axis = "evaluations") -> go.Figure:
    """Best search-time speedup so far of each trial, as steps; one legend entry per method."""
    palette = colours(trial.spec.method.name for trial in trials)
    figure = go.Figure()
    seen: set[str] = set()
    for trial in trials:
        if not drawable(trial, axis):
            continue
        name = trial.spec.method.name
        figure.add_trace(
            go.Scatter(
                x=[at(attempt, axis) for attempt in trial.attempts],
                y=_shown([attempt.best for attempt in trial.attempts]),
                mode="lines",
                line={"shape": "hv", "color": palette[name], "width": 2},
                opacity=0.75,
                name=name,
                legendgroup=name,
                showlegend=name not in seen,
                hovertemplate=f"{name}, seed {trial.spec.seed}<br>%{{x:,.4~r}} {axis}: %{{y:.3g}} ×<extra></extra>",
            )
        )
        seen.add(name)
    return _ground(figure, axis, height=340)


def one_trial(trial: TrialRecord, axis: Axis = "evaluations") -> go.Figure:
    """Best so far as steps, every candidate as a dot, failures as crosses on the zero line."""
    colour = colours([trial.spec.method.name])[trial.spec.method.name]
    points = trial.attempts if drawable(trial, axis) else ()
    passed = [attempt for attempt in points if attempt.status == Status.PASSED]
    failed = [attempt for attempt in points if attempt.status != Status.PASSED]
    figure = go.Figure(
        [
            go.Scatter(
                x=[at(attempt, axis) for attempt in points],
                y=_shown([attempt.best for attempt in points]),
                mode="lines",
                line={"shape": "hv", "color": colour, "width": 2},
                name="best so far",
                hoverinfo="skip",
            ),
            _marks(passed, axis, "candidate", {"color": colour, "size": 8}),
            _marks(failed, axis, "failed", {"size": 9, "symbol": "x-thin", "line": {"width": 2, "color": GREY}}),
        ]
    )
    return _ground(figure, axis, height=380)


def _shown(values: Sequence[float]) -> list[float | None]:
    """Nothing is drawn as best before something has passed."""
    return [value or None for value in values]


def _marks(attempts: Sequence[Attempt], axis: Axis, name: str, marker: dict[str, object]) -> go.Scatter:
    return go.Scatter(
        x=[at(attempt, axis) for attempt in attempts],
        y=[attempt.score.value for attempt in attempts],
        mode="markers",
        name=name,
        cliponaxis=False,  # failures lie on the zero line
        marker=marker,
        hovertext=[_told(attempt) for attempt in attempts],
        hoverinfo="text",
    )


def _told(attempt: Attempt) -> str:
    """What a dot says when pointed at; tokens by their kinds."""
    spent, usage = attempt.spent, attempt.spent.usage
    tokens = (
        f"{words.tokens(usage.input)} tokens in ({words.tokens(usage.cached)} cached), "
        f"{words.tokens(usage.output)} out ({words.tokens(usage.reasoning)} reasoning)"
    )
    price = "price unknown" if spent.usd is None else words.usd(spent.usd)
    first = f"candidate {attempt.number}<br>{attempt.status.value}<br>{words.interval(attempt.score)} ×"
    return f"{first}<br>so far: {tokens}<br>{price}, {words.seconds(spent.wall_s)}"


def _ground(figure: go.Figure, axis: Axis, height: int) -> go.Figure:
    figure.add_hline(y=1.0, line=BASELINE, annotation_text="baseline", annotation_position="top left")
    figure.update_xaxes(title_text=TITLES[axis], rangemode="tozero", tickprefix="$" if axis == "USD" else "")
    figure.update_yaxes(title_text="best search-time speedup<br>over the baseline (×)", rangemode="tozero")
    return charts.dressed(figure, height, legend=True)
