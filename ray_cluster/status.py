"""`derby status` and `derby stop`: what the ledgers say of a race, and a signal to whoever runs it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pydantic import JsonValue

from ray_cluster.console import Exit, data_console, print_json, say
from ray_cluster.follow import Standing
from ray_cluster.progress import Progress, State
from ray_cluster.race_folder import RaceFolder, races, specs
from ray_cluster.tables import progress_table, rows_table

STOP_S = 90.0


def show_status(runs: Path, race: str | None, as_json: bool) -> Exit:
    """One race's trials, or all races in a line each."""
    if race is None:
        return _all_races(runs, as_json)
    folder = RaceFolder(runs, race)
    standing = Standing(folder, specs(folder))
    standing.update()
    driver = folder.driver()
    if as_json:
        print_json("status", race=race, driver=driver, trials=[as_document(trial) for trial in standing.rows])
        return Exit.OK
    data_console().print(progress_table(standing.rows))
    say(f"{race} is being run by process {driver}" if driver else f"{race} is not being run")
    return Exit.OK


def _all_races(runs: Path, as_json: bool) -> Exit:
    rows = []
    for folder in races(runs):
        standing = Standing(folder, specs(folder))
        standing.update()
        finished = sum(trial.state is State.FINISHED for trial in standing.rows)
        rows.append((folder.race, len(standing.rows), finished, folder.driver()))
    if as_json:
        names = ("race", "trials", "finished", "driver")
        print_json("races", races=[dict(zip(names, row, strict=True)) for row in rows])
    else:
        shown = [(race, str(count), str(done), str(pid or "–")) for race, count, done, pid in rows]
        data_console().print(rows_table(("race", "trials", "finished", "run by process"), shown))
    return Exit.OK


def as_document(trial: Progress) -> dict[str, JsonValue]:
    """A trial's standing as `--json` prints it."""
    return {
        "trial": trial.trial,
        "method": trial.method,
        "task": trial.task,
        "seed": trial.seed,
        "state": trial.state.value,
        "failed": trial.failed,
        "reason": trial.reason,
        "budget": trial.budget.model_dump(mode="json"),
        "spent": trial.spent.model_dump(mode="json"),
        "starter": trial.starter,
        "best": trial.best,
        "best_number": trial.best_number,
        "champion": trial.champion,
        "heldout": trial.heldout,
    }


def stop_race(runs: Path, race: str) -> Exit:
    """Ask the driver of a race to stop, and wait until it has."""
    folder = RaceFolder(runs, race)
    specs(folder)
    driver = folder.driver()
    if driver is None:
        say(f"{race} is not being run")
        return Exit.OK
    os.kill(driver, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while folder.driver() == driver:
        if time.monotonic() > deadline:
            say(f"process {driver} was asked but has not ended yet; kill -9 {driver} loses nothing")
            return Exit.FAILED
        time.sleep(0.2)
    say(f"{race} was stopped; the same `derby run` goes on with it")
    return Exit.OK
