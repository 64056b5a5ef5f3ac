"""`derby board`, `standings` and `rebuild`: what races have found, on a page, in print, in MLflow."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import tasks
from leaderboard import mlflow_view, reading
from leaderboard.standings import as_dicts
from leaderboard.standings import standings as rank
from ray_cluster.console import Exit, MissingEnvironment, data_console, print_json, say, show_error
from ray_cluster.race_folder import races
from ray_cluster.tables import standings_table
from ray_cluster.tracking import quiet, tracking_uri
from suite.errors import LedgerError, UserError

APP = Path(reading.__file__).with_name("app.py")


def show_standings(runs: Path, race: str | None, as_json: bool) -> Exit:
    """Print every table of the board, or those of one race."""
    survey = reading.survey(runs)
    for notice in survey.notices:  # a damaged ledger is missing from the table, which a reader must know
        show_error(LedgerError(notice.came, notice.expected, notice.todo))
    known = sorted({one.spec.race for one in survey.trials} | {folder.race for folder in races(runs)})
    if race is not None and race not in known:
        raise UserError(
            f"there is no race {race!r} in {runs.absolute()}",
            f"one of {', '.join(known)}" if known else "a race that was begun (there is none yet)",
            "give the folder with --runs, or leave the name out",
        )
    tables = rank(one for one in survey.trials if race in (None, one.spec.race))
    if as_json:
        print_json("standings", standings=as_dicts(tables))
        return Exit.OK
    console = data_console()
    for table in tables:
        console.print(standings_table(table))
    if not tables:
        say(f"no trial in {runs.absolute()}; begin with `derby demo`")
    return Exit.OK


def how_to_look(runs: Path) -> list[str]:
    """The commands that open the board and MLflow's own page."""
    where = "" if runs == Path("runs") else f" --runs {runs}"
    return [
        f"board:  derby board{where}",
        f"MLflow: mlflow ui --backend-store-uri {tracking_uri(runs)}",
    ]


def run_board(runs: Path, port: int) -> Exit:
    """Serve the board until it is interrupted."""
    if importlib.util.find_spec("streamlit") is None:
        raise MissingEnvironment("streamlit is not installed", "the package streamlit", "pip install streamlit")
    for line in how_to_look(runs)[1:]:
        say(line)
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    quiet = ["--browser.gatherUsageStats=false", "--server.address=127.0.0.1"]
    # The board imports no tasks; it is told where they lie, so that it can show what a baseline looks like.
    environment = {**os.environ, "DERBY_RUNS": str(runs.absolute()), "DERBY_TASKS": str(tasks.HERE)}
    code = subprocess.run([*command, *quiet], env=environment, check=False).returncode
    return Exit.OK if code in (0, -2, 130) else Exit.INTERNAL


def rebuild_records(runs: Path) -> Exit:
    """Write MLflow's records anew from the ledgers."""
    if not runs.is_dir():
        raise UserError(f"there is no folder {runs.absolute()}", "a folder of races", "give it with --runs")
    quiet()
    count = mlflow_view.rebuild(runs, tracking_uri(runs))
    say(f"MLflow at {tracking_uri(runs)} holds the {count} trials whose ledgers are in {runs.absolute()}")
    return Exit.OK
