"""How the command line speaks: data on stdout, everything else on stderr, user errors in three parts, exit codes."""

from __future__ import annotations

import json
import math
import os
import sys
from enum import IntEnum
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from suite.errors import UserError

SCHEMA_VERSION = 1
"""Of everything `--json` prints; raised when a field changes its meaning."""


class Exit(IntEnum):
    """Exit codes of `derby`."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    FAILED = 3  # finished, but a trial (or the checked candidate) failed
    ENVIRONMENT = 4
    BUDGET = 5
    MISMATCH = 6
    INTERRUPTED = 130


class MissingEnvironment(UserError):
    """This machine lacks something that the command needs (a compiler, a package, a reachable address)."""


def progress_console() -> Console:
    """The console on stderr. rich honours NO_COLOR; a CI log is no terminal, whatever it claims."""
    return Console(stderr=True, highlight=False, force_terminal=False if in_ci() else None)


def data_console() -> Console:
    """The console on stdout. A pipe gets wide lines rather than tables folded at 80 columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def say(text: str) -> None:
    """One line of progress."""
    progress_console().print(escape(text), soft_wrap=True)


def print_json(kind: str, **fields: Any) -> None:
    """A JSON document on stdout, with its kind and schema version."""
    document = _finite({"schema_version": SCHEMA_VERSION, "kind": kind, **fields})
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN (an error figure may be either): they become null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_error(error: UserError) -> None:
    """The three parts of a user's error, without traceback."""
    console = progress_console()
    for label, text, style in (
        ("error", error.came, "bold red"),
        ("expected", error.expected, "yellow"),
        ("do", error.todo, "green"),
    ):
        console.print(Text.assemble((f"{label:>9}: ", style), text), soft_wrap=True)


def exit_code(error: UserError) -> Exit:
    return Exit.ENVIRONMENT if isinstance(error, MissingEnvironment) else Exit.USAGE
