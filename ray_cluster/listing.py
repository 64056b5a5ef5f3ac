"""`derby list`: the methods and tasks of this installation, the races begun here and the cards that come with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

import methods
import tasks
from ray_cluster.console import Exit, data_console, print_json
from ray_cluster.race_folder import races
from ray_cluster.tables import rows_table
from suite.errors import UserError
from suite.strict import nearest
from suite.task import load

CARDS = Path(__file__).parent / "races"

Rows = list[dict[str, JsonValue]]


def show_list(what: str, runs: Path, as_json: bool) -> Exit:
    """Print one of the lists. Raises `UserError` for another word."""
    lists: dict[str, Callable[[], Rows]] = {"methods": _methods, "tasks": _tasks, "races": lambda: _races(runs)}
    if what not in lists:
        raise UserError(f"there is no list of {what!r}", f"one of {', '.join(lists)}", nearest(what, lists))
    rows = lists[what]()
    if as_json:
        print_json(what, **{what: rows})
    elif rows:
        shown = [[_words(value) for value in row.values()] for row in rows]
        data_console().print(rows_table(tuple(rows[0]), shown))
    return Exit.OK


def _methods() -> Rows:
    return [
        {
            "name": one.name,
            "asks a model": one.uses_model,
            "options": dict(one.options),
            "what it does": one.summary or one.trouble,
        }
        for one in methods.describe()
    ]


def _tasks() -> Rows:
    loaded = [load(tasks.folder(name)) for name in tasks.names()]
    return [
        {
            "name": task.name,
            "title": task.title,
            "lane": task.lane,
            "languages": [language.value for language in task.languages],
            "starters": list(task.starters),
            "baseline": f"{task.baseline.name} v{task.baseline.version}",
        }
        for task in loaded
    ]


def _races(runs: Path) -> Rows:
    begun: Rows = [{"race": one.race, "where": str(one.path), "begun": True} for one in races(runs)]
    cards: Rows = [{"race": card.stem, "where": str(card), "begun": False} for card in sorted(CARDS.glob("*.toml"))]
    return begun + cards


def _words(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "–"
    return str(value)
