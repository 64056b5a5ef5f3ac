"""Trial records and tables -> plotly figures. Pure; colours are the same for a method on every chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import plotly.graph_objects as go

from leaderboard import words
from leaderboard.records import Attempt, TrialRecord
from leaderboard.standings import Row, Table
from suite.score import ZERO
from suite.types import Status

Axis = Literal["evaluations", "tokens", "USD", "wall seconds"]
AXES: tuple[Axis, ...] = ("evaluations", "tokens", "USD", "wall seconds")

GREY = "#8a8f98"
"""For starter, baseline and failures: readable on light and dark ground."""

BASELINE = {"color": GREY, "width": 1, "dash": "dash"}

# Okabe and Ito's palette without yellow and black, which vanish on one of the two grounds. The methods we know keep
# their colour whatever else is on the board; others take what is left, in order of name.
KNOWN = {
    "best_of_n": "#0072B2",
    "tpe": "#E69F00",
    "ksearch": "#009E73",
    "avo": "#D55E00",
    "openevolve": "#CC79A7",
    "shinkaevolve": "#56B4E9",
}
OTHERS = ("#7A5195", "#B58900", "#2F4B7C", "#A05195")


def colours(methods: Iterable[str]) -> dict[str, str]:
    """A colour for each method's name."""
    strangers = sorted(set(methods) - KNOWN.keys())
    return {**KNOWN, **{name: OTHERS[index % len(OTHERS)] for index, name in enumerate(strangers)}}


def intervals(table: Table) -> go.Figure:
    """A dot and 95 % interval per method: held-out filled, search hollow below it; a line at the baseline."""
    rows = [row for row in table.rows if row.kind == "method" and row.heldout is not None][::-1]
    palette = colours(row.name for row in rows)
    figure = go.Figure(
        [
            _dot(row, table.label(row), split, place, palette[row.name])
            for place, row in enumerate(rows)
            for split in ("held-out", "search")
        ]
    )
    figure.add_vline(x=1.0, line=BASELINE, annotation_text="baseline", annotation_position="top left")
    figure.update_xaxes(title_text="speedup over the baseline (×), 95 % interval", rangemode="tozero")
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=[table.label(row) for row in rows], range=[-0.6, len(rows) - 0.4]
    )
    return _dressed(figure, height=130 + 70 * len(rows), legend=False)


def _dot(row: Row, label: str, split: str, place: int, colour: str) -> go.Scatter:
    first = split == "held-out"
    estimate = (row.heldout if first else row.search) or ZERO
    bars = None
    if estimate.low is not None and estimate.high is not None:
        reach = {"array": [estimate.high - estimate.value], "arrayminus": [estimate.value - estimate.low]}
        bars = {**reach, "color": colour, "thickness": 2 if first else 1}
    return go.Scatter(
        x=[estimate.value],
        y=[place if first else place - 0.22],
        mode="markers",
        name=f"{label}, {split}",
        marker={"symbol": "circle" if first else "circle-open", "size": 12 if first else 8, "color": colour},
        error_x=bars,
        hovertemplate=f"{label}<br>{split}: {words.interval(estimate)} ×<br>{row.seeds} seeds<extra></extra>",
    )


def curves(trials: Sequence[TrialRecord], axis: Axis = "evaluations") -> go.Figure:
    """Best search-time speedup so far of each trial, as steps; one legend entry per method."""
    palette = colours(trial.spec.method.name for trial in trials)
    figure = go.Figure()
    seen: set[str] = set()
    for trial in trials:
        name = trial.spec.method.name
        points = [attempt for attempt in trial.attempts if _at(attempt, axis) is not None]
        figure.add_trace(
            go.Scatter(
                x=[_at(attempt, axis) for attempt in points],
                y=[attempt.best or None for attempt in points],
                mode="lines",
                line={"shape": "hv", "color": palette[name], "width": 2},
                opacity=0.75,
                name=name,
                legendgroup=name,
                showlegend=name not in seen,
                hovertemplate=f"{name}, seed {trial.spec.seed}<br>%{{x}} {axis}: %{{y:.3g}} ×<extra></extra>",
            )
        )
        seen.add(name)
    return _ground(figure, axis, height=340)


def curve(trial: TrialRecord, axis: Axis = "evaluations") -> go.Figure:
    """One trial: best so far as steps, every candidate as a dot, failures as crosses on the zero line."""
    colour = colours([trial.spec.method.name])[trial.spec.method.name]
    points = [attempt for attempt in trial.attempts if _at(attempt, axis) is not None]
    passed = [attempt for attempt in points if attempt.status == Status.PASSED]
    failed = [attempt for attempt in points if attempt.status != Status.PASSED]
    figure = go.Figure(
        [
            go.Scatter(
                x=[_at(attempt, axis) for attempt in points],
                y=[attempt.best or None for attempt in points],
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


def _marks(attempts: Sequence[Attempt], axis: Axis, name: str, marker: dict[str, object]) -> go.Scatter:
    return go.Scatter(
        x=[_at(attempt, axis) for attempt in attempts],
        y=[attempt.score.value for attempt in attempts],
        mode="markers",
        name=name,
        cliponaxis=False,  # failures lie on the zero line
        marker=marker,
        customdata=[[attempt.number, attempt.status.value, words.interval(attempt.score)] for attempt in attempts],
        hovertemplate="candidate %{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]} ×<extra></extra>",
    )


def _at(attempt: Attempt, axis: Axis) -> float | None:
    return {
        "evaluations": float(attempt.number),
        "tokens": float(attempt.tokens),
        "USD": attempt.usd,
        "wall seconds": attempt.wall_s,
    }[axis]


def _ground(figure: go.Figure, axis: Axis, height: int) -> go.Figure:
    figure.add_hline(y=1.0, line=BASELINE, annotation_text="baseline", annotation_position="top left")
    figure.update_xaxes(
        title_text="evaluations (0: the starter)" if axis == "evaluations" else axis, rangemode="tozero"
    )
    figure.update_yaxes(title_text="search-time speedup (×)", rangemode="tozero")
    return _dressed(figure, height, legend=True)


def _dressed(figure: go.Figure, height: int, legend: bool) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        showlegend=legend,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure
