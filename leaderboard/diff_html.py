"""A file's differences -> HTML, side by side or unified. Every text in it is hostile and is escaped. Pure.

Colours are see-through, so that they suit light and dark ground; orange and blue, and signs beside them, so that
nobody needs to tell red from green.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal

from leaderboard import words
from leaderboard.diff import FileDiff, Row, Side

Layout = Literal["side by side", "unified"]
LAYOUTS: tuple[Layout, ...] = ("side by side", "unified")

STYLE = """<style>
.derby-diff { max-height: 640px; overflow: auto; border: 1px solid rgba(128,128,128,.35); border-radius: 6px; }
.derby-diff table { width: 100%; table-layout: fixed; border-collapse: collapse; margin: 0;
  font: 13px/1.5 "Source Code Pro", ui-monospace, Menlo, Consolas, monospace; }
.derby-diff td, .derby-diff th { padding: 0 6px; border: 0; vertical-align: top; font-weight: normal; }
.derby-diff td { white-space: pre-wrap; overflow-wrap: anywhere; }
.derby-diff th.n { width: 48px; text-align: right; opacity: .65; user-select: none; }
.derby-diff th.s { width: 20px; padding: 0; text-align: center; user-select: none; }
.derby-diff .old { background: rgba(213,94,0,.14); } .derby-diff .old mark { background: rgba(213,94,0,.34); }
.derby-diff .new { background: rgba(0,114,178,.16); } .derby-diff .new mark { background: rgba(0,114,178,.40); }
.derby-diff mark { color: inherit; border-radius: 2px; }
.derby-diff .gap td { text-align: center; opacity: .65; background: rgba(128,128,128,.10); }
.derby-diff .none { background: rgba(128,128,128,.06); }
</style>"""


def render(file: FileDiff, layout: Layout, names: tuple[str, str]) -> str:
    """The file's rows as a table; `names`: what the two sides are called."""
    width = 6 if layout == "side by side" else 4
    body = _beside(file.rows, width) if layout == "side by side" else _unified(file.rows, width)
    label = escape(f"{words.plain(file.path)}: {names[0]} and {names[1]}")
    table = f'<table aria-label="{label}">{_columns(layout)}<tbody>{"".join(body)}</tbody></table>'
    return f'{STYLE}<div class="derby-diff">{table}</div>'


def _columns(layout: Layout) -> str:
    """A table of fixed layout takes its widths from its first row."""
    number, sign, text = '<col style="width:48px">', '<col style="width:20px">', "<col>"
    parts = (number, sign, text, number, sign, text) if layout == "side by side" else (number, number, sign, text)
    return f"<colgroup>{''.join(parts)}</colgroup>"


def _beside(rows: Sequence[Row], width: int) -> Iterator[str]:
    for row in rows:
        if row.kind == "gap":
            yield _gap(row, width)
        else:
            changed = row.kind != "same"
            yield f"<tr>{_half(row.before, changed, 'old')}{_half(row.after, changed, 'new')}</tr>"


def _half(side: Side | None, changed: bool, kind: Literal["old", "new"]) -> str:
    if side is None:
        return '<th class="n none"></th><th class="s none"></th><td class="none"></td>'
    shade = f" {kind}" if changed else ""
    sign = {"old": "−", "new": "+"}[kind] if changed else ""
    return (
        f'<th class="n{shade}">{side.number}</th><th class="s{shade}">{sign}</th><td class="{shade}">{_text(side)}</td>'
    )


def _unified(rows: Sequence[Row], width: int) -> Iterator[str]:
    """Within a run of changes first what went, then what came, as in any patch."""
    came: list[str] = []
    for row in rows:
        if row.kind in ("same", "gap"):
            yield from came
            came = []
        if row.kind == "gap":
            yield _gap(row, width)
        elif row.kind == "same":
            yield _line(row.before, row.after, "")
        else:
            if row.before:
                yield _line(row.before, None, "old")
            if row.after:
                came.append(_line(None, row.after, "new"))
    yield from came


def _line(before: Side | None, after: Side | None, shade: str) -> str:
    side = after or before
    assert side is not None, "a line belongs to one side at least"
    left, right = (str(one.number) if one else "" for one in (before, after))
    sign = {"old": "−", "new": "+"}.get(shade, "")
    numbers = f'<th class="n">{left}</th><th class="n">{right}</th><th class="s">{sign}</th>'
    return f'<tr class="{shade}">{numbers}<td>{_text(side)}</td></tr>'


def _gap(row: Row, width: int) -> str:
    plural = "" if row.skipped == 1 else "s"
    return f'<tr class="gap"><td colspan="{width}">{row.skipped} unchanged line{plural}</td></tr>'


def _text(side: Side) -> str:
    parts, done = [], 0
    for start, end in side.spans:
        parts += [_escaped(side.text[done:start]), f"<mark>{_escaped(side.text[start:end])}</mark>"]
        done = end
    return "".join([*parts, _escaped(side.text[done:])])


def _escaped(text: str) -> str:
    return escape(words.plain(text))
