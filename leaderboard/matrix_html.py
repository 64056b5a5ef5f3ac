"""A matrix -> an HTML table: numbers first, colours beside them, and a link to every trial behind a number. Pure.

HTML and not Streamlit's own table, which is drawn on a canvas: this one can be read aloud and walked by keyboard.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import urlencode

from leaderboard import words
from leaderboard.matrix import Column, Line, Matrix
from leaderboard.standings import Row
from suite.score import Estimate

FULL = 2.0
"""From this factor on, above or below the baseline, a cell has its strongest colour."""

STYLE = """<style>
.derby-matrix { overflow-x: auto; }
.derby-matrix table { border-collapse: separate; border-spacing: 3px; margin: 0; width: auto; }
.derby-matrix th, .derby-matrix td { border: 0; padding: 8px 12px; text-align: right; vertical-align: top; }
.derby-matrix td { border-radius: 6px; min-width: 150px; }
.derby-matrix thead th { vertical-align: bottom; font-weight: 600; }
.derby-matrix tbody th { text-align: left; font-weight: 500; max-width: 360px; overflow-wrap: anywhere; }
.derby-matrix b { font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.derby-matrix small { display: block; font-size: .8rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
.derby-matrix small a { margin-left: 5px; }
.derby-matrix td a, .derby-matrix th a { color: inherit; text-decoration: underline; text-underline-offset: 2px; }
.derby-matrix .absent { background: rgba(128,128,128,.08); }
.derby-matrix .failed { background: repeating-linear-gradient(45deg, rgba(128,128,128,.24) 0 6px,
  rgba(128,128,128,.08) 6px 12px); }
.derby-matrix .overall td, .derby-matrix .overall th { border-top: 2px solid rgba(128,128,128,.5); border-radius: 0; }
</style>"""


def render(matrix: Matrix, lines: Sequence[Line], pages: Mapping[str, str], seeds: Mapping[str, int]) -> str:
    """`pages`: the address of each task's table by the table's id; `seeds`: the seed of each trial by its id."""
    head = "".join(f'<th scope="col">{_plain(column.label)}</th>' for column in matrix.columns)
    body = "".join(_task(line, pages, seeds) for line in lines)
    caption = "Held-out speedup over the baseline, tasks by methods"
    table = (
        f'<table aria-label="{caption}"><thead><tr><th scope="col" style="text-align:left">Task</th>{head}</tr></thead>'
        f"<tbody>{body}{_overall(matrix)}</tbody></table>"
    )
    return f'{STYLE}<div class="derby-matrix">{table}</div>'


def _task(line: Line, pages: Mapping[str, str], seeds: Mapping[str, int]) -> str:
    page = pages.get(line.table.partition.id, "")
    name = f'<a href="{escape(page)}" target="_self">{_plain(line.label)}</a>' if page else _plain(line.label)
    return f'<tr><th scope="row">{name}</th>{"".join(_cell(row, seeds) for row in line.cells)}</tr>'


def _cell(row: Row | None, seeds: Mapping[str, int]) -> str:
    if row is None:
        return '<td class="absent">–<small>not run</small></td>'
    links = _links(row.trials, seeds)
    if row.heldout is None:
        return f'<td class="absent">–<small>not finished</small><small>{links}</small></td>'
    marks = "".join(f"<small>{escape(mark)}</small>" for mark in row.marks)
    rank = f"<small>rank {row.rank}</small>" if row.rank else ""
    return f"<td {_paint(row.heldout)}>{_number(row.heldout)}{rank}{marks}<small>{links}</small></td>"


def _links(trials: Iterable[str], seeds: Mapping[str, int]) -> str:
    """`seeds 1 2 3`, each a link to its trial's page."""
    found = sorted((seeds[trial], trial) for trial in trials if trial in seeds)
    links = [
        f'<a href="trial?{escape(urlencode({"trial": trial}))}" target="_self">{seed}</a>' for seed, trial in found
    ]
    return f"seed{'' if len(links) == 1 else 's'} {' '.join(links)}"


def _number(estimate: Estimate) -> str:
    if estimate.value <= 0:
        return "<b>0</b> ×<small>a champion failed</small>"
    between = ""
    if estimate.low is not None and estimate.high is not None:
        between = f"<small>{words.three(estimate.low)} – {words.three(estimate.high)}</small>"
    return f"<b>{words.three(estimate.value)}</b> ×{between}"


def _paint(estimate: Estimate) -> str:
    if estimate.value <= 0:
        return 'class="failed"'
    strength = max(-1.0, min(1.0, math.log(estimate.value) / math.log(FULL)))
    colour = "0,114,178" if strength > 0 else "213,94,0"
    return f'style="background:rgba({colour},{0.06 + 0.36 * abs(strength):.2f})"'


def _overall(matrix: Matrix) -> str:
    count = len(matrix.lines)
    title = f"All {count} tasks<small>geometric mean</small>"
    cells = "".join(_mean(column, count) for column in matrix.columns)
    return f'<tr class="overall"><th scope="row">{title}</th>{cells}</tr>' if count > 1 else ""


def _mean(column: Column, count: int) -> str:
    if column.overall is None:
        return f'<td class="absent">–<small>finished on {count - column.missing} of {count} tasks</small></td>'
    marks = "".join(f"<small>{escape(mark)}</small>" for mark in column.marks)
    return f"<td {_paint(column.overall)}>{_number(column.overall)}{marks}</td>"


def _plain(text: str) -> str:
    """Names of tasks are long; they may be broken behind an underscore."""
    return escape(words.plain(text)).replace("_", "_<wbr>")
