"""The ledger keeps what was written, notices what was not, and no view can hurt it."""

from __future__ import annotations

import json
import logging
import math
import resource
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.errors import LedgerError
from suite.events import Evaluated, Event, MethodEnded, TrialStarted, TrialSuspended
from suite.ledger import VERSION, Ledger, read, read_line, read_on
from suite.scripted import ScriptedEvaluator
from suite.types import Correctness, Job, Spent, Tier
from tests.suite.stage import STARTER, order, task


def started(folder: Path) -> TrialStarted:
    spec = order(folder).spec
    return TrialStarted(trial=spec, starter=STARTER, environment={"cpu": "x"}, heldout_commitment="c" * 64)


def written(folder: Path, lines: int = 4) -> Path:
    path = folder / "ledger.jsonl"
    with Ledger.open(path) as ledger:
        ledger.append(started(folder))
        for index in range(lines - 1):
            ledger.append(TrialSuspended(reason=f"reason {index}"))
    return path


class Notebook:
    """A view that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, str]] = []

    def record(self, trial: str, seq: int, event: Event) -> None:
        self.lines.append((trial, seq, event.kind))


class Broken:
    """A view that always fails."""

    def record(self, trial: str, seq: int, event: Event) -> None:
        raise RuntimeError("no server")


class Stuck:
    """A view that hangs until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def record(self, trial: str, seq: int, event: Event) -> None:
        self.go.wait()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    evaluation = ScriptedEvaluator().evaluate(Job(task=task(), candidate=STARTER, tier=Tier.SEARCH))
    events: list[Event] = [
        started(tmp_path),
        Evaluated(number=0, candidate=STARTER, evaluation=evaluation, spent=Spent()),
        MethodEnded(reason="method ended", exit_code=0, log="πλ 中 \u2028 \r\n"),
    ]
    with Ledger.open(tmp_path / "a" / "ledger.jsonl") as ledger:
        for event in events:
            ledger.append(event)
    entries = read(tmp_path / "a" / "ledger.jsonl")
    assert [entry.event for entry in entries] == events
    assert [entry.seq for entry in entries] == [0, 1, 2]
    assert all(entry.time.endswith("+00:00") for entry in entries)


def test_infinite_and_undefined_errors_survive(tmp_path: Path) -> None:
    evaluation = ScriptedEvaluator().evaluate(Job(task=task(), candidate=STARTER, tier=Tier.SEARCH))
    wrong = Correctness(max_absolute_error=math.inf, max_relative_error=math.nan, compared=1, referenced=1)
    measurement = evaluation.measurements[0].model_copy(update={"correctness": wrong})
    evaluation = evaluation.model_copy(update={"measurements": (measurement,)})
    with Ledger.open(tmp_path / "ledger.jsonl") as ledger:
        ledger.append(started(tmp_path))
        ledger.append(Evaluated(number=0, candidate=STARTER, evaluation=evaluation, spent=Spent()))
    event = read(tmp_path / "ledger.jsonl")[1].event
    assert isinstance(event, Evaluated)
    correctness = event.evaluation.measurements[0].correctness
    assert correctness is not None
    assert correctness.max_absolute_error == math.inf and math.isnan(correctness.max_relative_error)


def test_a_reopened_ledger_goes_on_with_the_chain(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    with Ledger.open(path) as ledger:
        assert len(ledger.entries) == 3
        entry = ledger.append(TrialSuspended(reason="more"))
    assert entry.seq == 3
    entries = read(path)
    assert [after.prev for after in entries[1:]] == [before.hash for before in entries[:-1]]


def test_a_grown_ledger_is_read_on_from_where_reading_stopped(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    known, offset = read_on(path)
    with Ledger.open(path) as ledger:
        ledger.append(TrialSuspended(reason="more"))
    new, end = read_on(path, offset, len(known), known[-1].hash)
    assert [*known, *new] == read(path) and end == path.stat().st_size
    assert read_on(path, end, 4, new[-1].hash) == ([], end)
    with pytest.raises(LedgerError, match="does not follow"):
        read_on(path, offset, len(known), known[0].hash)


def test_one_line_is_checked_against_its_own_hash(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    assert [read_line(path, seq) for seq in range(3)] == read(path)
    for missing in (3, 99):
        with pytest.raises(LedgerError):
            read_line(path, missing)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[1], lines[0], lines[2]]))
    with pytest.raises(LedgerError, match="does not follow"):
        read_line(path, 0)
    with pytest.raises(LedgerError):
        read_line(tmp_path / "none.jsonl", 0)


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(min_value=1))
def test_a_torn_last_line_is_set_aside_wherever_it_is_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = written(tmp_path_factory.mktemp("torn"), 3)
    data = path.read_bytes()
    start = data[:-1].rfind(b"\n") + 1
    keep = start + 1 + cut % (len(data) - start - 1)
    path.write_bytes(data[:keep])
    assert len(read(path)) == 2
    with Ledger.open(path) as ledger:
        assert len(ledger.entries) == 2
        ledger.append(TrialSuspended(reason="after"))
    assert len(read(path)) == 3
    assert (path.parent / "ledger.torn").read_bytes() == data[start:keep] + b"\n"


def test_a_ledger_torn_in_its_first_line_starts_anew(tmp_path: Path) -> None:
    path = written(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:50])
    with Ledger.open(path) as ledger:
        assert ledger.entries == ()


def reseal(line: bytes, **changes: object) -> bytes:
    return json.dumps({**json.loads(line), **changes}).encode()


@pytest.mark.parametrize(
    ("damage", "words", "number"),
    [
        (lambda lines: [lines[0], lines[1].replace(b"reason 0", b"reason 9"), *lines[2:]], "was edited", 2),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], "does not follow", 2),
        (lambda lines: [lines[0], *lines[2:]], "does not follow", 2),
        (lambda lines: lines[1:], "does not follow", 1),
        (lambda lines: [*lines[:2], b"{]", lines[3]], "is not JSON", 3),
        (lambda lines: [*lines[:3], b"[" * 5000], "is not JSON", 4),
        (lambda lines: [*lines[:3], b"17"], "has no version", 4),
        (lambda lines: [reseal(lines[0], version=VERSION + 1), *lines[1:]], "has version 2", 1),
    ],
)
def test_a_ledger_that_is_not_what_was_written_is_refused(
    tmp_path: Path, damage: object, words: str, number: int
) -> None:
    assert callable(damage)
    path = written(tmp_path)
    path.write_bytes(b"\n".join(damage(path.read_bytes().splitlines())) + b"\n")
    for opening in (read, Ledger.open):
        with pytest.raises(LedgerError, match=words) as refusal:
            opening(path)
        assert f"line {number} of {path}" in refusal.value.came
        assert refusal.value.expected and refusal.value.todo


def test_an_unknown_event_with_a_valid_seal_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 1)
    from_the_future = json.loads(path.read_bytes())
    from_the_future["event"] = {"kind": "applause"}
    del from_the_future["hash"]
    canonical = json.dumps(from_the_future, sort_keys=True, separators=(",", ":"))
    from_the_future["hash"] = sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(from_the_future) + "\n")
    with pytest.raises(LedgerError, match="line 1 of"):
        read(path)


def test_a_missing_ledger_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="can not be read"):
        read(tmp_path / "none.jsonl")


def test_a_full_disk_is_a_sentence_and_the_next_opening_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path, 2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Ledger.open(path) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, limits[1]))
        try:
            with pytest.raises(LedgerError, match="File too large"):
                ledger.append(TrialSuspended(reason="x"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        with pytest.raises(LedgerError, match="earlier write failed"):
            ledger.append(TrialSuspended(reason="x"))
    with Ledger.open(path) as ledger:
        assert ledger.append(TrialSuspended(reason="x")).seq == 2


HOLD = """
import sys, time
from pathlib import Path
from suite.ledger import Ledger
ledger = Ledger.open(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def holder(path: Path, seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path), str(seconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_writer_is_told_who_holds_the_ledger(tmp_path: Path) -> None:
    path = written(tmp_path)
    with holder(path, 60) as process:
        try:
            with pytest.raises(LedgerError, match=f"in use by process {process.pid}"):
                Ledger.open(path, wait_s=0.1)
            assert len(read(path)) == 4  # reading needs no lock
        finally:
            process.kill()


def test_a_dying_writer_is_waited_for(tmp_path: Path) -> None:
    path = written(tmp_path)
    with holder(path, 0.5):
        Ledger.open(path, wait_s=30).close()


def test_views_are_told_of_every_line_and_again_at_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first, second = Notebook(), Notebook()
    with Ledger.open(path, [first]) as ledger:
        ledger.append(started(tmp_path))
        ledger.append(TrialSuspended(reason="x"))
    Ledger.open(path, [second]).close()
    trial = order(tmp_path).spec.id
    assert first.lines == second.lines == [(trial, 0, "trial_started"), (trial, 1, "trial_suspended")]


def test_a_failing_view_is_logged_once_and_hurts_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook()
    with caplog.at_level(logging.WARNING), Ledger.open(tmp_path / "ledger.jsonl", [Broken(), notebook]) as ledger:
        ledger.append(started(tmp_path))
        for _ in range(5):
            ledger.append(TrialSuspended(reason="x"))
    assert len(notebook.lines) == 6
    assert [record.message for record in caplog.records if "Broken" in record.message] == [
        "the view Broken failed; the trial goes on, further errors are not shown"
    ]


def test_a_hanging_view_does_not_hold_up_the_trial(tmp_path: Path) -> None:
    stuck = Stuck()
    with Ledger.open(tmp_path / "ledger.jsonl", [stuck]) as ledger:
        ledger.append(started(tmp_path))
        for _ in range(5):
            ledger.append(TrialSuspended(reason="x"))
        assert len(read(tmp_path / "ledger.jsonl")) == 6
        stuck.go.set()


def test_what_is_no_file_is_a_ledger_error(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").mkdir()
    with pytest.raises(LedgerError, match="can not be written"):
        Ledger.open(tmp_path / "ledger.jsonl")
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="can not be written"):
        Ledger.open(tmp_path / "file" / "ledger.jsonl")
