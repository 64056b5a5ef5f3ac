"""MLflow shows what the ledgers say, once, on a real SQLite store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run, Trace
from pydantic import JsonValue

from leaderboard import run_facts
from leaderboard.mlflow_view import ENVIRONMENT, MlflowView, initialise, rebuild
from suite.errors import LedgerError, UserError
from suite.events import Evaluated, Event, TrialResumed, TrialSuspended
from suite.ledger import read
from suite.score import score
from suite.types import Status
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan

pytestmark = [
    pytest.mark.slow,
    # Said of MLflow's own code: of its queries by SQLAlchemy, of its functions by itself when it makes the first span.
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType:UserWarning"),
]
PLAN = Plan()
TRIAL = canned.trial_spec(PLAN).id
EVENTS = canned.events(PLAN)
CARD: dict[str, JsonValue] = {"race": "demo", "methods": ["best_of_n"]}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store: making its tables takes seconds, copying it nothing."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    initialise(f"sqlite:///{path}")
    return path


@pytest.fixture
def uri(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "mlflow.db").write_bytes(template.read_bytes())
    before = mlflow.get_tracking_uri()
    yield f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.flush_trace_async_logging()
    mlflow.set_tracking_uri(before)


def tell(view: MlflowView, events: list[Event], first: int = 0, plan: Plan = PLAN) -> None:
    for seq, event in enumerate(events, first):
        view.record(canned.trial_spec(plan).id, seq, event)


def experiment(uri: str) -> str:
    found = MlflowClient(uri).get_experiment_by_name("kernel-derby/dev")
    assert found is not None
    return str(found.experiment_id)


def runs(uri: str, kind: str = "trial") -> list[Run]:
    return list(MlflowClient(uri).search_runs([experiment(uri)], f"tags.`derby.kind` = '{kind}'"))


def traced(uri: str) -> list[Trace]:
    return list(MlflowClient(uri).search_traces(locations=[experiment(uri)]))


def series(uri: str, run: Run, name: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in MlflowClient(uri).get_metric_history(run.info.run_id, name)]


def test_a_trial_is_a_child_run_of_its_race_with_a_step_for_every_candidate(uri: str) -> None:
    view = MlflowView(uri, "dev", CARD)
    tell(view, EVENTS)
    view.close()
    (parent,), (run,) = runs(uri, "race"), runs(uri)
    assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert (run.info.status, parent.info.status) == ("FINISHED", "FINISHED")
    judged = [event for event in EVENTS if isinstance(event, Evaluated)]
    passed = [event for event in judged if event.evaluation.status == Status.PASSED]
    expected = [(event.number, score(event.evaluation).value) for event in passed]
    assert series(uri, run, "speedup/candidate") == expected
    best = series(uri, run, "speedup/best")
    assert [step for step, _ in best] == list(range(6)) and [value for _, value in best] == sorted(v for _, v in best)
    assert run.data.metrics["evals/failed"] == 2 and run.data.metrics["evals/total"] == 5
    assert run.inputs is not None and run.inputs.dataset_inputs[0].dataset.digest == "a" * 36


def test_artifacts_hold_the_champion_its_workloads_and_the_environment(uri: str) -> None:
    view = MlflowView(uri, "dev", CARD)
    tell(view, EVENTS)
    view.close()
    (run,) = runs(uri)
    client = MlflowClient(uri)
    names = {item.path for folder in ("", "champion") for item in client.list_artifacts(run.info.run_id, folder)}
    assert {"environment.json", "champion/workloads.json", "champion/sandbox.json", "champion/kernel.cpp"} <= names
    source = Path(client.download_artifacts(run.info.run_id, "champion/kernel.cpp")).read_text()
    assert source == canned.candidate(3).text()


def test_every_candidate_and_the_champion_have_a_trace_with_its_stages(uri: str) -> None:
    view = MlflowView(uri, "dev", CARD)
    tell(view, EVENTS)
    view.close()
    traces = {
        trace.info.tags["derby.iteration"]: trace
        for trace in MlflowClient(uri).search_traces(locations=[experiment(uri)])
    }
    assert traces.keys() == {"0", "1", "2", "3", "4", "5", "champion"}
    spans = {span.name: span for span in traces["3"].data.spans}
    assert spans.keys() == {"evaluation 3", "model call", "build", "start", "check", "timing"}
    seconds = (spans["timing"].end_time_ns - spans["timing"].start_time_ns) / 1e9
    assert seconds == pytest.approx(1.2, abs=1e-3)


def test_sampled_traces_leave_candidates_out_and_the_champion_in(uri: str) -> None:
    view = MlflowView(uri, "dev", CARD, trace_every=4)
    tell(view, EVENTS)
    view.close()
    found = {
        trace.info.tags["derby.iteration"] for trace in MlflowClient(uri).search_traces(locations=[experiment(uri)])
    }
    assert found == {"0", "4", "champion"}


@pytest.mark.parametrize("cut", [1, 6, len(EVENTS) - 1])
def test_told_again_from_the_start_after_a_crash_everything_counts_once(uri: str, cut: int) -> None:
    tell(MlflowView(uri, "dev", CARD), EVENTS[:cut])
    tell(MlflowView(uri, "dev", CARD), EVENTS)
    (run,) = runs(uri)
    assert [step for step, _ in series(uri, run, "speedup/best")] == list(range(6))
    assert (run.data.metrics["evals/failed"], run.info.status) == (2, "FINISHED")
    assert len(runs(uri, "race")) == 1


def test_a_view_that_only_hears_the_rest_goes_on_where_the_other_stopped(uri: str) -> None:
    tell(MlflowView(uri, "dev", CARD), EVENTS[:9])
    tell(MlflowView(uri, "dev", CARD), EVENTS[9:], first=9)
    (run,) = runs(uri)
    assert [step for step, _ in series(uri, run, "speedup/best")] == list(range(6))
    assert run.data.metrics["evals/failed"] == 2


def test_the_same_line_twice_in_a_row_counts_once(uri: str) -> None:
    view = MlflowView(uri, "dev", CARD)
    for seq, event in enumerate(EVENTS):
        view.record(TRIAL, seq, event)
        view.record(TRIAL, seq, event)
    (run,) = runs(uri)
    assert [step for step, _ in series(uri, run, "speedup/best")] == list(range(6))
    assert run.data.metrics["evals/failed"] == 2


def test_suspended_and_abandoned_trials_are_closed_and_a_resumed_one_is_open(uri: str) -> None:
    view = MlflowView(uri, "dev", CARD)
    tell(view, [*EVENTS[:4], TrialSuspended(reason="three failures")])
    assert [(run.info.status, run.data.tags["derby.state"]) for run in runs(uri)] == [("KILLED", "suspended")]
    view.record(TRIAL, 5, TrialResumed(environment={}))
    assert [run.info.status for run in runs(uri)] == ["RUNNING"]
    view.close()
    assert [run.info.status for run in runs(uri)] == ["KILLED"]


def test_a_trial_without_its_first_line_is_refused_with_a_way_out(uri: str) -> None:
    with pytest.raises(LedgerError, match="rebuild"):
        MlflowView(uri, "dev", CARD).record(TRIAL, 3, EVENTS[3])


def test_runs_are_made_again_from_ledgers_and_a_second_time_changes_nothing(uri: str, tmp_path: Path) -> None:
    path = canned.write(tmp_path / "runs", Plan(seed=1))
    canned.write(tmp_path / "runs", Plan(seed=2))
    canned.write(tmp_path / "runs", Plan(seed=3)).write_text("broken\n")
    assert rebuild(tmp_path / "runs", uri) == 2
    first = {run.info.run_name: (run.info.run_id, run.data.metrics, run.data.tags) for run in runs(uri)}
    assert rebuild(tmp_path / "runs", uri) == 2
    assert {run.info.run_name: (run.info.run_id, run.data.metrics, run.data.tags) for run in runs(uri)} == first
    start = read(path)[0].event
    assert start.kind == "trial_started"
    assert run_facts.run_name(start.trial) in first


def test_an_unreachable_server_is_named_and_does_not_hold_anyone_up(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UserError, match=r"does not answer at http://127\.0\.0\.1:9"):
        initialise("http://127.0.0.1:9")
