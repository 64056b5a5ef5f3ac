"""MLflow never stops a race: it is filled behind a fence, and forgotten with a race that begins afresh."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow import MlflowClient

from ray_cluster.tracking import MlflowRecorder, recorder, tracking_uri
from suite.ledger import read
from tests.ray_cluster.events import begun, raced
from tests.ray_cluster.stage import card

pytestmark = [  # of MLflow's own making
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType:UserWarning"),
]
SILENT = {"methods": ["tpe"], "model": None}
# Nobody listens there: a connection is refused at once.
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def test_the_default_address_is_absolute_and_one_variable_changes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tracking_uri(Path("runs")) == f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere:5000")
    assert tracking_uri(Path("runs")) == "http://elsewhere:5000"


@pytest.mark.slow
def test_a_race_is_recorded_and_a_fresh_one_replaces_it(tmp_path: Path) -> None:
    race = begun(tmp_path, card(**SILENT))
    raced(race.orders()[0])
    trial = race.resolved.trials[0].id
    entries = read(race.folder.ledger(trial))
    for fresh in (False, False, True):
        said: list[str] = []
        view = recorder(tmp_path, race.resolved, fresh)
        view = MlflowRecorder(tracking_uri(tmp_path), race.resolved, fresh, said.append)
        for entry in entries:
            view.record(trial, entry.seq, entry.event)
        view.close()
        assert said == []
    client = MlflowClient(tracking_uri(tmp_path))
    experiment = client.get_experiment_by_name("kernel-derby/test")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.status for run in runs) == ["FINISHED", "FINISHED"]  # the race and its one trial


@pytest.mark.slow
def test_an_unreachable_server_is_said_once_and_then_left_alone(tmp_path: Path) -> None:
    race = begun(tmp_path, card(**SILENT))
    raced(race.orders()[0])
    trial = race.resolved.trials[0].id
    said: list[str] = []
    view = MlflowRecorder(NOWHERE, race.resolved, tell=said.append)
    for entry in read(race.folder.ledger(trial)):
        view.record(trial, entry.seq, entry.event)
    view.close()
    assert len(said) == 1 and "derby rebuild" in said[0]
