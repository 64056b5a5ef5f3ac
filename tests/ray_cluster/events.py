"""Ledgers written by the real trial on made-up verdicts, for tests of what is shown of them."""

from __future__ import annotations

import threading
from pathlib import Path

from ray_cluster.matrix import courses, resolve_race
from ray_cluster.race_card import RaceCard
from ray_cluster.race_folder import RaceFolder
from ray_cluster.run import Race
from suite.scripted import ScriptedEvaluator
from suite.task import draw_heldout
from suite.trial import TrialOrder, run_trial


def begun(runs: Path, card: RaceCard) -> Race:
    """A race with its folder settled, none of its trials run."""
    course = courses(card)
    folder = RaceFolder(runs, card.name)
    with folder.hold():
        resolved = resolve_race(card, course)
        secret = folder.secret()
        folder.settle(resolved)
        heldout = {name: draw_heldout(one.task, secret) for name, one in course.items()}
    return Race(folder, resolved, course, heldout, {})


def raced(order: TrialOrder, evaluator: ScriptedEvaluator | None = None) -> None:
    """Run a trial of a method that asks no model, in this process."""
    assert run_trial(order, evaluator or ScriptedEvaluator(), None, threading.Event()) == "finished"
