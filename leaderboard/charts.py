"""What all figures share, and the intervals of a table. Pure; a method has the same colour on every chart."""

from __future__ import annotations

from collections.abc import Iterable

import plotly.graph_objects as go

from leaderboard import words
from leaderboard.standings import Row, Table
from suite.score import ZERO

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


def faint(colour: str, opacity: float) -> str:
    """`#rrggbb` as a colour one can see through, which suits light and dark ground alike."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


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
    return dressed(figure, height=130 + 70 * len(rows), legend=False)


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


def dressed(figure: go.Figure, height: int, legend: bool) -> go.Figure:
    """The figure with the margins and legend that all figures of the board have."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        showlegend=legend,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure
