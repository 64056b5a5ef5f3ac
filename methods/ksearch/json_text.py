"""Finds the JSON object in a model's answer, whatever stands around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Object = dict[str, Any]
DEPTH_LIMIT = 200
"""Objects nested deeper are nobody's plan; the parser's own limit depends on who calls it."""
MOST_TRIES = 1000
"""Braces at which a scan looks."""


def first_object(text: str, wanted: Callable[[Object], bool], scan_all: bool = False) -> Object | None:
    """The object that is the whole text or stands in it first, if it is `wanted`.

    As the original reads: braces are paired from the first one on, so that one left open hides all that follows, and
    nothing is looked at behind the first pair that parses. `scan_all` tries every brace until an object is wanted.
    """
    whole = _parsed(text.strip())
    if isinstance(whole, dict):
        return whole if wanted(whole) else (_scanned(text, wanted) if scan_all else None)
    if scan_all:
        return _scanned(text, wanted)
    found = next((value for part in _pairs(text) if isinstance(value := _parsed(part), dict)), None)
    return found if found is not None and wanted(found) else None


def _scanned(text: str, wanted: Callable[[Object], bool]) -> Object | None:
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(MOST_TRIES):
        start = text.find("{", start + 1)  # within an object too: the wanted one may be inside
        value = _decoded(decoder, text, start) if start >= 0 else None
        if start < 0 or (value is not None and wanted(value)):
            return value
    return None


def _decoded(decoder: json.JSONDecoder, text: str, start: int) -> Object | None:
    try:
        value, _ = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pairs(text: str) -> Iterator[str]:
    """The outermost {...} of the text in order; braces within strings of an object do not count."""
    start, depth, quoted, escaped = 0, 0, False, False
    for index, mark in enumerate(text):
        if quoted:
            escaped, quoted = mark == "\\" and not escaped, mark != '"' or escaped
        elif mark == '"' and depth:
            quoted = True
        elif mark == "{":
            start = index if depth == 0 else start
            depth += 1
            if depth > DEPTH_LIMIT:
                return
        elif mark == "}" and depth:
            depth -= 1
            if depth == 0:
                yield text[start : index + 1]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
