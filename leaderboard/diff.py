"""Two candidates -> the lines in which their files differ, paired for reading side by side. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from suite.types import Candidate

CONTEXT = 3
"""Unchanged lines shown around a change."""

PATIENCE = 50_000
"""Pairs of equal lines up to which difflib looks at all of them; its time grows faster than they do."""

WORDY = 300
"""Characters up to which two lines are compared word by word."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
Kind = Literal["same", "removed", "added", "changed", "gap"]


@dataclass(frozen=True)
class Side:
    """A line of one file: its number from 1, its text, and the spans (start, end) of it that differ."""

    number: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Row:
    """A line before and after; None where there is none. A `gap` stands for `skipped` unchanged lines."""

    kind: Kind
    before: Side | None = None
    after: Side | None = None
    skipped: int = 0


@dataclass(frozen=True)
class FileDiff:
    """One file of the two; without rows it is the same in both."""

    path: str
    rows: tuple[Row, ...]
    added: int
    removed: int


def compare(before: Candidate, after: Candidate) -> tuple[FileDiff, ...]:
    """Every file of either side, the changed ones first; a file that one side lacks counts as empty there.

    The entry files are one and the same file whatever they are called: a baseline's often has another name.
    """
    old, new = _files(before), _files(after)
    first, second = (candidate.spec.entry_point.split("::")[0] for candidate in (before, after))
    pairs = [(first, second), *((name, name) for name in dict.fromkeys([*new, *old]) if name not in (first, second))]
    found = [_file(left, right, old.get(left, ""), new.get(right, "")) for left, right in pairs]
    return tuple(sorted(found, key=lambda file: not file.rows))


def _files(candidate: Candidate) -> dict[str, str]:
    return {source.path: source.content for source in candidate.sources}


def _file(left: str, right: str, old: str, new: str) -> FileDiff:
    rows = tuple(lines(old.splitlines(), new.splitlines()))
    return FileDiff(
        path=right if left == right else f"{left} → {right}",
        rows=rows,
        added=sum(row.kind in ("added", "changed") for row in rows),
        removed=sum(row.kind in ("removed", "changed") for row in rows),
    )


def lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    """The changes with some lines around them; nothing if there are none."""
    if list(old) == list(new):
        return
    seen = 0
    for group in _matcher(old, new).get_grouped_opcodes(CONTEXT):
        if group[0][1] > seen:
            yield Row("gap", skipped=group[0][1] - seen)
        for tag, start, end, from_, to in group:
            yield from _block(tag == "equal", _numbered(old, start, end), _numbered(new, from_, to))
            seen = end
    if seen < len(old):
        yield Row("gap", skipped=len(old) - seen)


def _matcher(old: Sequence[str], new: Sequence[str]) -> SequenceMatcher[str]:
    """Of all lines if that is affordable, else without frequent ones, else (a made-up file) of none."""
    often = {line for line, count in Counter(new).items() if len(new) >= 200 and count > len(new) // 100 + 1}
    if _pairs(old, new, frozenset()) <= PATIENCE:
        return SequenceMatcher(None, old, new, autojunk=False)
    if _pairs(old, new, often) <= PATIENCE:
        return SequenceMatcher(None, old, new, autojunk=True)
    return SequenceMatcher(lambda _: True, old, new)


def _pairs(old: Sequence[str], new: Sequence[str], without: Set[str]) -> int:
    here, there = Counter(old), Counter(new)
    return sum(count * there[line] for line, count in here.items() if line not in without)


def _numbered(texts: Sequence[str], start: int, end: int) -> list[Side]:
    return [Side(place + 1, texts[place]) for place in range(start, end)]


def _block(same: bool, old: Sequence[Side], new: Sequence[Side]) -> Iterator[Row]:
    for left, right in zip_longest(old, new):
        if same:
            yield Row("same", left, right)
        elif left is None or right is None:
            yield Row("added" if left is None else "removed", left, right)
        else:
            yield Row("changed", *_marked(left, right))


def _marked(left: Side, right: Side) -> tuple[Side, Side]:
    """The two lines with the words in which they differ; none if they have little in common."""
    if max(len(left.text), len(right.text)) > WORDY:
        return left, right
    old, new = _WORDS.findall(left.text), _WORDS.findall(right.text)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < 0.5:
        return left, right
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        Side(left.number, left.text, tuple(_span(old, code[1], code[2]) for code in codes if code[1] < code[2])),
        Side(right.number, right.text, tuple(_span(new, code[3], code[4]) for code in codes if code[3] < code[4])),
    )


def _span(parts: Sequence[str], start: int, end: int) -> tuple[int, int]:
    begin = sum(map(len, parts[:start]))
    return begin, begin + sum(map(len, parts[start:end]))
