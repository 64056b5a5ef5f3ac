"""Finds the `tune:` comments of a source, and writes the source again with other values.

    constexpr int kHeadsPerPass = 4;  // tune: heads_per_pass in {1, 2, 4, 8}
    BLOCK = 64                        # tune: block in {32, 64, 128}

The current value is the last thing assigned on the line, before the comment. Values are handled as they are spelled, so
that a source whose values do not change is the same source, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from suite.errors import TaskError

_COMMENT = re.compile(r"(?://|#)[ \t]*tune:(?P<body>.*)$")
_BODY = re.compile(r"^\s*(?P<name>[A-Za-z_]\w*)\s+in\s+\{(?P<values>[^{}]*)\}\s*$")
# Possessive: the sources of a stand-in's prompts are a method's words, and must not be able to keep it busy for ever.
_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]++|(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?)[uUlLfF]*+"
_WORD = r"[A-Za-z_]\w*(?:(?:::|\.)[A-Za-z_]\w*)*"
_VALUE = re.compile(rf"(?:{_NUMBER}|{_WORD})")
_ASSIGNED = re.compile(rf"(?:=[ \t]*|^\s*#[ \t]*define[ \t]+\w+[ \t]+)(?P<value>{_VALUE.pattern})[ \t]*+[;,]?[ \t]*+$")

Value = str | int | float | bool
"""A tunable's value: its spelling, or the number or bool it spells."""


@dataclass(frozen=True)
class Tunable:
    """A dial of a source: its admissible `values` and the `current` one, as spelled; `line` counts from 1."""

    name: str
    values: tuple[str, ...]
    current: str
    line: int


def find(source: str) -> tuple[Tunable, ...]:
    """The tunables in order of line. Raises `TaskError` for a `tune:` comment that says something impossible."""
    found: dict[str, Tunable] = {}
    for number, line in enumerate(source.split("\n"), start=1):
        comment = _COMMENT.search(line)
        if comment is None:
            continue
        tunable = _parse(number, line[: comment.start()], comment["body"])
        if tunable.name in found:
            raise _trouble(
                number, f"{tunable.name!r} is tuned on line {found[tunable.name].line} too", "one line per name"
            )
        found[tunable.name] = tunable
    return tuple(found.values())


def render(source: str, values: Mapping[str, Value]) -> str:
    """The source with the named tunables set to `values`, all else untouched.

    Raises `TaskError` for a name the source does not tune or a value its comment does not admit.
    """
    tunables = {tunable.name: tunable for tunable in find(source)}
    lines = source.split("\n")
    for name, value in values.items():
        if name not in tunables:
            known = ", ".join(tunables) or "none"
            raise TaskError(f"no tunable {name!r}", f"one of: {known}", "name a tunable of this source")
        tunable = tunables[name]
        lines[tunable.line - 1] = _with_value(lines[tunable.line - 1], _spelling(tunable, value))
    return "\n".join(lines)


def _parse(number: int, code: str, body: str) -> Tunable:
    parts = _BODY.match(body)
    if parts is None:
        raise _trouble(number, f"'tune:{body.rstrip()}'", "tune: name in {value, value, ...}")
    values = tuple(value.strip() for value in parts["values"].split(","))
    if bad := [value for value in values if not _VALUE.fullmatch(value)]:
        raise _trouble(number, f"the values {bad}", "numbers, words, true or false, separated by commas")
    if len(values) < 2 or len(set(values)) < len(values):
        raise _trouble(number, f"the values {list(values)}", "at least two values, each once")
    assigned = _ASSIGNED.search(code)
    if assigned is None:
        raise _trouble(number, f"no value before the comment in {code.strip()!r}", "an assignment such as NAME = 4;")
    if assigned["value"] not in values:
        raise _trouble(number, f"the current value {assigned['value']}", f"one of its values {list(values)}")
    return Tunable(parts["name"], values, assigned["value"], number)


def _with_value(line: str, spelling: str) -> str:
    comment = _COMMENT.search(line)
    assigned = _ASSIGNED.search(line[: comment.start()]) if comment else None
    if assigned is None:
        raise AssertionError(f"no longer a tunable line: {line!r}")
    return line[: assigned.start("value")] + spelling + line[assigned.end("value") :]


def _spelling(tunable: Tunable, value: Value) -> str:
    """How the comment spells a value, which may be given as spelled or as the number or bool meant."""
    for spelled in tunable.values:
        if value == spelled or (not isinstance(value, str) and _meaning(spelled) == (type(value) is bool, value)):
            return spelled
    raise TaskError(f"{tunable.name} = {value}", f"one of {list(tunable.values)}", "choose an admissible value")


def _meaning(spelled: str) -> tuple[bool, bool | float] | None:
    """(is it a bool, its value), None for a word; keeps true and 1 apart, which Python would call equal."""
    if spelled in ("true", "True", "false", "False"):
        return True, spelled in ("true", "True")
    try:
        if spelled.lower().lstrip("+-").startswith("0x"):
            return False, int(spelled.rstrip("uUlL"), 16)
        return False, float(spelled.rstrip("uUlLfF"))
    except ValueError:
        return None


def _trouble(line: int, came: str, expected: str) -> TaskError:
    return TaskError(f"line {line}: {came}", expected, "correct the tune: comment or the value before it")
