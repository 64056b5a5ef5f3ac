"""MLflow as a view of ledgers: an experiment per edition, a run per race, a child run per trial, candidates as steps.

It can be wiped and rebuilt from the ledgers at any time (`rebuild`). A line that comes twice counts once: a run carries
the number of the last line it has taken in, written in one transaction with what the line says. Only the client
interface with explicit run ids is used, because MLflow's "active run" is a global that parallel trials would share.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.telemetry import set_telemetry_client
from pydantic import JsonValue

from leaderboard import run_facts
from leaderboard.mlflow_traces import Traces
from leaderboard.reading import LEDGERS
from leaderboard.run_facts import KIND, NUMBER, SEQ, STATE, TRIAL, Facts
from suite import ledger
from suite.errors import LedgerError, UserError
from suite.events import (
    ChampionMeasured,
    Evaluated,
    Event,
    ModelCalled,
    TrialFinished,
    TrialResumed,
    TrialStarted,
    TrialSuspended,
)
from suite.score import score
from suite.types import Candidate, Split, Status

# A view must fail fast when its server is away; MLflow would try for many minutes. Whoever sets them otherwise wins.
ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
SQLITE = "sqlite:///"


def initialise(tracking_uri: str) -> None:
    """Creates the store's tables; to be called once before workers start, who would break each other doing it.

    Raises `UserError` if the store cannot be reached.
    """
    _settle(tracking_uri)
    if tracking_uri.startswith(SQLITE):
        Path(tracking_uri.removeprefix(SQLITE)).resolve().parent.mkdir(parents=True, exist_ok=True)
    try:
        MlflowClient(tracking_uri).search_experiments(max_results=1)
    except MlflowException as error:
        raise UserError(
            f"MLflow does not answer at {tracking_uri}: {str(error).splitlines()[0]}",
            "a tracking server or a file one may write, as sqlite:///runs/mlflow.db",
            "start the server or change MLFLOW_TRACKING_URI; the race itself does not need MLflow",
        ) from error


def _settle(tracking_uri: str) -> None:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    set_telemetry_client()  # type: ignore[no-untyped-call]  # decided at import, so it must be asked again
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it announces every table it makes
    # Runs are addressed through clients, but MLflow exports traces to the process's one global address.
    mlflow.set_tracking_uri(tracking_uri)


@dataclass
class _Open:
    """What is remembered of a trial between its lines. `seq`: last line in MLflow; `read`: last one remembered."""

    run_id: str
    start_ms: int
    seq: int = -1
    read: int = -1
    number: int = 0
    best: float = 0.0
    failed: int = 0
    wall_s: float = 0.0
    calls: list[ModelCalled] = field(default_factory=list)
    sources: dict[str, Candidate] = field(default_factory=dict)

    def remember(self, seq: int, event: Event) -> None:
        if seq <= self.read:
            return
        self.read = seq
        if isinstance(event, ModelCalled):
            self.calls.append(event)
        elif isinstance(event, Evaluated):
            self.sources[event.evaluation.candidate] = event.candidate
            self.best = max(self.best, score(event.evaluation, Split.SEARCH).value)
            self.failed += event.evaluation.status != Status.PASSED
            self.number, self.wall_s = event.number, event.spent.wall_s


@dataclass(frozen=True)
class _Line:
    seq: int
    event: Event
    now: float


class MlflowView:
    """A `Recorder`. It may raise whatever MLflow raises: the ledger calls it behind a fence. Not thread-safe.

    A line that could not be written is kept and tried again, in order, when the trial's next line comes.
    """

    def __init__(
        self, tracking_uri: str, edition: str, race_card: Mapping[str, JsonValue], trace_every: int = 1
    ) -> None:
        """`trace_every`: of how many evaluations one gets a trace (champions always do)."""
        _settle(tracking_uri)
        self._client = MlflowClient(tracking_uri)
        self._uri = tracking_uri
        self._card = dict(race_card)
        self._experiment = self._find_experiment(f"kernel-derby/{edition}")
        self._traces = Traces(self._client, self._experiment, trace_every)
        self._open: dict[str, _Open] = {}
        self._late: dict[str, deque[_Line]] = {}

    def record(self, trial: str, seq: int, event: Event) -> None:
        """Take in line `seq` of the ledger of `trial`; a line that was taken in before is passed over."""
        self.record_at(trial, seq, event, time.time())

    def record_at(self, trial: str, seq: int, event: Event, now: float) -> None:
        """The same at a given time (seconds since 1970), for ledgers read afterwards."""
        late = self._late.setdefault(trial, deque())
        late.append(_Line(seq, event, now))
        while late:
            self._line(trial, late[0])
            late.popleft()

    def close(self) -> None:
        """Sends what is queued and closes what this view has left open: a trial that has not ended was killed."""
        mlflow.flush_trace_async_logging()
        for run in self._open.values():
            if self._client.get_run(run.run_id).info.status == "RUNNING":
                self._client.set_terminated(run.run_id, "KILLED")
        for parent in self._search(f"tags.`{KIND}` = 'race' and attributes.status = 'RUNNING'"):
            self._client.set_terminated(parent.info.run_id, "FINISHED")

    # ------------------------------------------------------------------------------------------ one line

    def _line(self, trial: str, line: _Line) -> None:
        run, event = self._run(trial, line), line.event
        run.remember(line.seq, event)
        if line.seq > run.seq and (facts := self._take(run, line)) is not None:
            self._write(run, line.seq, facts)
            if isinstance(event, Evaluated | ChampionMeasured):
                self._traces.add(run.run_id, trial, event, tuple(run.calls), line.now)
        if isinstance(event, Evaluated):
            run.calls.clear()

    def _take(self, run: _Open, line: _Line) -> Facts | None:
        match line.event:
            case TrialStarted() as event:
                return self._started(run, event)
            case TrialResumed():
                self._client.update_run(run.run_id, status="RUNNING")
                return Facts(tags={STATE: "running"})
            case Evaluated() as event:
                return run_facts.evaluated(event, run.best, run.failed)
            case ChampionMeasured() as event:
                self._champion(run, event)
                return run_facts.champion(event, run.wall_s)
            case TrialSuspended() as event:
                self._client.set_terminated(run.run_id, "KILLED", int(line.now * 1000))
                return Facts(tags={STATE: "suspended", "derby.reason": event.reason})
            case TrialFinished() as event:
                self._client.set_terminated(run.run_id, "FINISHED", int(line.now * 1000))
                return run_facts.finished(event)
            case _:
                return None

    def _started(self, run: _Open, event: TrialStarted) -> Facts:
        spec = event.trial
        # The digest is the set's identity; the workloads themselves stand in the champion's table.
        workloads = Dataset(spec.task, spec.task_digest[:36], "derby-task", json.dumps({"task": spec.task}))
        tag = InputTag("mlflow.data.context", "workloads")
        self._client.log_inputs(run.run_id, [DatasetInput(workloads, [tag])])
        self._client.log_dict(run.run_id, {**event.environment, **spec.toolchain}, "environment.json")
        return run_facts.started(event)

    def _champion(self, run: _Open, event: ChampionMeasured) -> None:
        table = run_facts.workloads(event.evaluation)
        self._client.log_dict(run.run_id, {"workloads": table}, "champion/workloads.json")
        self._client.log_dict(run.run_id, dict(event.evaluation.sandbox), "champion/sandbox.json")
        source = run.sources.get(event.candidate)
        for file in source.sources if source else ():
            self._client.log_text(run.run_id, file.content, f"champion/{file.path}")

    def _write(self, run: _Open, seq: int, facts: Facts) -> None:
        # The trial's own clock, not ours: a line written twice then makes the same points and MLflow keeps one.
        stamp = run.start_ms + int(facts.wall_s * 1000)
        self._client.log_batch(
            run.run_id,
            metrics=[Metric(name, value, stamp, run.number) for name, value in facts.metrics.items()],
            params=[Param(name, value) for name, value in facts.params.items()],
            tags=[RunTag(name, value) for name, value in {**facts.tags, SEQ: str(seq)}.items()],
        )
        run.seq = seq

    # ------------------------------------------------------------------------------------------ finding runs

    def _run(self, trial: str, line: _Line) -> _Open:
        if trial in self._open:
            return self._open[trial]
        found = self._search(f"tags.`{TRIAL}` = '{trial}'")
        if found:
            run = _found(found[0], from_start=line.seq == 0)
        elif isinstance(line.event, TrialStarted):
            run = _Open(self._create(line.event, line.now), int(line.now * 1000))
        else:
            raise LedgerError(
                f"line {line.event.kind!r} of the trial {trial}, which MLflow does not know",
                "the trial's first line before any other",
                "rebuild the view from the ledgers",
            )
        self._open[trial] = run
        return run

    def _create(self, event: TrialStarted, now: float) -> str:
        spec = event.trial
        tags = {**run_facts.identity(spec), "mlflow.parentRunId": self._parent(spec.race, now)}
        run = self._client.create_run(
            self._experiment, start_time=int(now * 1000), tags=tags, run_name=run_facts.run_name(spec)
        )
        return str(run.info.run_id)

    def _parent(self, race: str, now: float) -> str:
        found = self._search(f"tags.`{KIND}` = 'race' and tags.`derby.race` = '{race}'")
        if found:
            self._client.update_run(found[0].info.run_id, status="RUNNING")
            return str(found[0].info.run_id)
        tags = {KIND: "race", "derby.race": race}
        run = self._client.create_run(self._experiment, start_time=int(now * 1000), tags=tags, run_name=race)
        self._client.log_dict(run.info.run_id, self._card, "race_card.json")
        return str(run.info.run_id)

    def _search(self, text: str) -> list[Run]:
        return list(self._client.search_runs([self._experiment], text, max_results=1000))

    def _find_experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        place = None
        if self._uri.startswith(SQLITE):
            # Beside the database; MLflow would put artifacts into whatever folder the command was started in.
            place = (Path(self._uri.removeprefix(SQLITE)).resolve().parent / "artifacts" / name).as_uri()
        return str(self._client.create_experiment(name, artifact_location=place))


def _found(run: Run, from_start: bool) -> _Open:
    """A run made by an earlier process. Its totals are the store's, or the ledger's if that is told from the start."""
    tags, metrics = run.data.tags, run.data.metrics
    opened = _Open(run.info.run_id, run.info.start_time, seq=int(tags.get(SEQ, -1)))
    if not from_start:
        opened.read = opened.seq
        opened.number = int(tags.get(NUMBER, 0))
        opened.best = metrics.get("speedup/best", 0.0)
        opened.failed = int(metrics.get("evals/failed", 0))
        opened.wall_s = metrics.get("time/wall_s", 0.0)
    return opened


def rebuild(runs: Path, tracking_uri: str) -> int:
    """Makes the runs of all readable ledgers again (those already there are completed); returns how many trials.

    Raises `UserError` if the store cannot be reached.
    """
    initialise(tracking_uri)
    count = 0
    for race in sorted({path.parents[2] for path in runs.glob(LEDGERS)}):
        count += _rebuild_race(race, tracking_uri)
    return count


def _rebuild_race(race: Path, tracking_uri: str) -> int:
    card = race / "card.json"
    known: dict[str, JsonValue] = json.loads(card.read_text()) if card.exists() else {"race": race.name}
    views: dict[str, MlflowView] = {}
    count = 0
    for path in sorted(race.glob("trials/*/ledger.jsonl")):
        try:
            entries = ledger.read(path)
        except LedgerError:
            continue  # the board names it
        if not entries or not isinstance(entries[0].event, TrialStarted):
            continue
        spec = entries[0].event.trial
        if spec.edition not in views:
            views[spec.edition] = MlflowView(tracking_uri, spec.edition, known)
        for entry in entries:
            moment = datetime.fromisoformat(entry.time).timestamp()
            views[spec.edition].record_at(spec.id, entry.seq, entry.event, moment)
        count += 1
    for view in views.values():
        view.close()
    return count
