"""MLflow as the command line sees it: one address, initialised before any worker starts, never able to stop a race."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from leaderboard import mlflow_view
from ray_cluster.console import say
from suite.events import Recorder

ADDRESS = "MLFLOW_TRACKING_URI"
"""The one knob."""
log = logging.getLogger(__name__)


def tracking_uri(runs: Path) -> str:
    """MLFLOW_TRACKING_URI, else a SQLite file in the runs folder (absolute: a relative one depends on who opens it)."""
    return os.environ.get(ADDRESS) or f"sqlite:///{runs.absolute() / 'mlflow.db'}"


def mlflow_views(runs: Path) -> tuple[Recorder, ...]:
    """The MLflow view, or none (with a warning) where it cannot be set up: the ledgers are the truth."""
    uri = tracking_uri(runs)
    try:
        mlflow_view.initialise(uri)
        return (mlflow_view.MlflowView(uri),)
    except Exception as error:
        log.debug("MLflow could not be set up", exc_info=True)
        say(f"warning: MLflow at {uri} cannot be used ({type(error).__name__}); `derby rebuild` fills it in later")
        return ()
