"""MLflow as the command line sees it: one address, behind a fence, never in the way of a race."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mlflow import MlflowClient

from leaderboard.mlflow_view import MlflowView, initialise
from ray_cluster.console import say
from ray_cluster.matrix import ResolvedRace
from suite.errors import UserError
from suite.events import Event

ADDRESS = "MLFLOW_TRACKING_URI"
"""The one knob."""
SQLITE = "sqlite:"


def tracking_uri(runs: Path) -> str:
    """MLFLOW_TRACKING_URI, else a SQLite file in the runs folder (absolute: a relative one depends on who opens it)."""
    return os.environ.get(ADDRESS) or f"sqlite:///{runs.absolute() / 'mlflow.db'}"


class MlflowRecorder:
    """A `Recorder` that sets MLflow up when it is told the first line, in whatever thread tells it.

    The first trouble is said, once. A view that could not be set up is given up for this run: `derby rebuild` makes
    it again from the ledgers. `fresh`: what MLflow holds of an earlier race of this name is deleted first, since the
    race's folder was moved aside and its trials have the same ids again.
    """

    def __init__(self, uri: str, race: ResolvedRace, fresh: bool = False, tell: Callable[[str], None] = say) -> None:
        self._uri, self._race, self._fresh, self._tell = uri, race, fresh, tell
        self._view: MlflowView | None = None
        self._given_up = self._warned = False

    def record(self, trial: str, seq: int, event: Event) -> None:
        if self._given_up:
            return
        try:
            if self._view is None:
                self._view = self._open()
            self._view.record(trial, seq, event)
        except Exception as error:  # noqa: BLE001 - the fence: MLflow raises what it likes, and no view may stop a race
            self._given_up = self._view is None
            self._warn(error)

    def close(self) -> None:
        """Close the runs left open, unless MLflow has been in trouble: then it would be waited for in vain."""
        if self._view is None or self._warned:
            return
        try:
            self._view.close()
        except Exception as error:  # noqa: BLE001 - as above
            self._warn(error)

    def _open(self) -> MlflowView:
        initialise(self._uri)
        if self._fresh:
            forget(self._uri, self._race)
        return MlflowView(self._uri, self._race.card.edition, self._race.card.model_dump(mode="json"))

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._tell(f"warning: MLflow cannot be written: {reason}\n  the race goes on; later: derby rebuild")


def forget(uri: str, race: ResolvedRace) -> None:
    """Delete the runs of a race (MLflow keeps deleted runs in its bin)."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(f"kernel-derby/{race.card.edition}")
    if experiment is not None:
        found = client.search_runs([experiment.experiment_id], f"tags.`derby.race` = '{race.card.name}'")
        for run in found:
            client.delete_run(run.info.run_id)


def recorder(runs: Path, race: ResolvedRace, fresh: bool = False) -> MlflowRecorder:
    """The recorder of a race. A SQLite store is made at once, before anything could open it at the same time."""
    quiet()
    uri = tracking_uri(runs)
    if uri.startswith(SQLITE):
        with suppress(UserError):  # the recorder will meet it again and say so
            initialise(uri)
    return MlflowRecorder(uri, race, fresh)


def quiet() -> None:
    """MLflow reports every table it makes."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
