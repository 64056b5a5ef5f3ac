"""Runs a page of the board as a browser would, without one."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[2] / "leaderboard" / "app.py"


def page(name: str = "", **query: str) -> AppTest:
    """The front page, or another one by its module's name, with a query in its address."""
    # AppTest can only switch to pages that are files, so any other page is run by itself.
    script = f"from leaderboard import {name}_page\n{name}_page.show()\n"
    app = AppTest.from_string(script, default_timeout=120) if name else AppTest.from_file(APP, default_timeout=120)
    for key, text in query.items():
        app.query_params[key] = text
    app.run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    """Everything the page says in words."""
    found = [*app.info, *app.warning, *app.error, *app.caption, *app.code, *app.markdown]
    return "\n".join(str(item.value) for item in found)


def html(app: AppTest) -> str:
    """The page's own HTML."""
    return "\n".join(element.proto.body for element in app.get("html"))


def charts(app: AppTest) -> int:
    """How many figures the page draws."""
    return len(app.get("plotly_chart"))
