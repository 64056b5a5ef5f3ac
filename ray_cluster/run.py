"""`derby run`: one race from its card to its standings; the same command goes on with it, whatever ended it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leaderboard import reading
from leaderboard.standings import as_dicts
from leaderboard.standings import standings as rank
from ray_cluster.actors import Ended, JudgeMaker
from ray_cluster.console import Exit, data_console, print_json, progress_console, say
from ray_cluster.driver import Driver
from ray_cluster.follow import Follower, Standing
from ray_cluster.interrupts import Interrupts
from ray_cluster.judging import LocalJudge, need_compiler
from ray_cluster.matrix import Course, ResolvedRace, courses, resolve_race
from ray_cluster.models import check_key, keys_in
from ray_cluster.placement import Cluster, ClusterPlan
from ray_cluster.placement_plan import cores_here
from ray_cluster.progress import Progress, State
from ray_cluster.race_card import RaceCard, load_card
from ray_cluster.race_folder import RaceFolder, commitment
from ray_cluster.status import as_document
from ray_cluster.tables import progress_table, standings_table
from ray_cluster.tracking import recorder
from suite.events import Recorder
from suite.task import draw_heldout
from suite.trial import TrialOrder
from suite.types import Workload

TRIALS_A_JUDGE = 4


@dataclass(frozen=True)
class Race:
    """A race ready to run: its folder is held, its card settled, its held-out workloads drawn."""

    folder: RaceFolder
    resolved: ResolvedRace
    course: dict[str, Course]
    heldout: dict[str, tuple[Workload, ...]]
    keys: Mapping[str, str]

    def orders(self) -> list[TrialOrder]:
        promise = commitment(self.folder.secret())
        return [
            TrialOrder(
                spec=spec,
                task=self.course[spec.task].task,
                starter=self.course[spec.task].starter,
                brief=self.course[spec.task].brief,
                folder=self.folder.trial(spec.id),
                heldout=self.heldout[spec.task],
                heldout_commitment=promise,
            )
            for spec in self.resolved.trials
        ]


def run_card(path: Path, runs: Path, fresh: bool, as_json: bool) -> Exit:
    """Run the race on the card at `path` and print its standings."""
    card = load_card(path)
    need_compiler()
    with Interrupts() as interrupts, prepared(card, runs, fresh) as race:
        views = recorder(race.folder.runs, race.resolved, fresh)
        trials, ended = conduct(race, interrupts, LocalJudge(card.timing), (views,))
        views.close()
    stopped = interrupts.stopping.is_set()
    whole = show_results(race, trials, as_json)
    again = shlex.join(["derby", "run", str(path), *(["--runs", str(runs)] if runs != Path("runs") else [])])
    code = _conclude(trials, ended, stopped, again)
    return code if whole or code is not Exit.OK else Exit.FAILED


@contextmanager
def prepared(card: RaceCard, runs: Path, fresh: bool) -> Iterator[Race]:
    """The race on `card`, its folder held. Raises `UserError` for whatever is wrong before anything is started."""
    course = courses(card)
    keys = keys_in(os.environ)
    check_key(card.model, keys)
    folder = RaceFolder(runs, card.name)
    resolve_race(card, course)  # a card that cannot be raced must not move or make a folder
    if fresh and (aside := folder.move_aside()) is not None:
        say(f"the earlier race was moved to {aside}")
    with folder.hold():
        resolved = resolve_race(card, course, folder.price())
        secret = folder.secret()  # before the card, whose presence says that there is one
        folder.settle(resolved)
        heldout = {name: draw_heldout(one.task, secret) for name, one in course.items()}
        yield Race(folder, resolved, course, heldout, keys)


def conduct(
    race: Race, interrupts: Interrupts, judge: JudgeMaker, views: Sequence[Recorder] = ()
) -> tuple[tuple[Progress, ...], dict[str, Ended]]:
    """Run what is left of a race; returns where its trials stand and how those that ran have ended."""
    card = race.resolved.card
    standing = Standing(race.folder, race.resolved.trials)
    ended: dict[str, Ended] = {}
    with Follower(standing, progress_console(), views):
        todo = [one for one in race.orders() if standing.trials[one.spec.id].state is not State.FINISHED]
        if todo:
            judges = cores_here(card.judges)
            with Cluster(ClusterPlan(judges, judge, dict(race.keys))) as cluster:
                interrupts.install()
                driver = Driver(
                    places=cluster,
                    at_once=card.trials_at_once or TRIALS_A_JUDGE * len(judges),
                    lines=_lines,
                    tell=say,
                    stopping=interrupts.stopping,
                )
                ended = driver.run(todo)
    if all(trial.state is State.FINISHED for trial in standing.rows):
        race.folder.reveal(race.heldout)
    return standing.rows, ended


def _lines(order: TrialOrder) -> int:
    """Complete lines in a trial's ledger."""
    try:
        return (order.folder / "ledger.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def show_results(race: Race, trials: Sequence[Progress], as_json: bool) -> bool:
    """The race's trials and standings on stdout; False if a ledger is damaged, which is said."""
    survey = reading.survey(race.folder.runs)
    tables = rank([one for one in survey.trials if one.spec.race == race.resolved.card.name])
    damaged = [one for one in survey.notices if one.ledger.is_relative_to(race.folder.path)]
    for notice in damaged:
        say(f"not ranked: {notice.came}\n  expected: {notice.expected}\n  do: {notice.todo}")
    if as_json:
        shown = [as_document(trial) for trial in trials]
        print_json("race", race=race.resolved.card.name, trials=shown, standings=as_dicts(tables))
        return not damaged
    console = data_console()
    for table in tables:
        console.print(standings_table(table))
    if not tables:
        console.print(progress_table(trials))
    return not damaged


def _conclude(trials: Sequence[Progress], ended: Mapping[str, Ended], stopped: bool, again: str) -> Exit:
    """Say what did not go as it should, and how to go on."""
    for one in ended.values():
        if one.error is not None or one.died is not None:
            came, expected, todo = one.error or (one.died or "", "a process that lives", "see trial.log in its folder")
            say(f"{one.trial}: {came}\n  expected: {expected}\n  do: {todo}")
    left = [trial for trial in trials if trial.state is not State.FINISHED]
    if left:
        say(f"{len(left)} of {len(trials)} trials are not finished; go on with: {again}")
    if stopped and left:
        return Exit.INTERRUPTED
    return Exit.FAILED if left or any(trial.failed for trial in trials) else Exit.OK
