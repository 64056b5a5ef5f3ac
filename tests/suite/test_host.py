"""A method's process gets what it needs and nothing else, and nothing of it outlives the trial's process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from suite.launch import LOG_LIMIT, MethodProcess
from suite.scripted import ScriptedModel
from suite.types import Budget, MethodSpec
from suite.walls import landlock
from tests.suite.stage import PROBES
from tests.suite.test_gateway import House, open_house

fenced = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no landlock")
WEAK = frozenset({"namespaces", "cgroups"})
"""What a container without privileges refuses."""
walls = pytest.mark.parametrize("without", [frozenset(), WEAK], ids=["all walls", "weak host"])


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path, ScriptedModel(["// a reply"]), Budget(evaluations=3)) as opened:
        yield opened


def start(house: House, method: str, without: frozenset[str] = frozenset(), **options: JsonValue) -> MethodProcess:
    target = method if ":" in method else f"{PROBES}:{method}"
    spec = MethodSpec(name=method, target=target, options=dict(options))
    return MethodProcess(spec, 7, house.bench.folder.parent, (house.url, house.token), without)


def finish(process: MethodProcess) -> int:
    assert process.wait(200)  # a tenth of a claim to cpu time may be little on a busy machine
    return process.end()


def told(process: MethodProcess) -> dict[str, str]:
    """What a probe said so far."""
    return dict(line.split(": ", 1) for line in process.tail().splitlines() if ": " in line)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass within a minute")


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_spent_budget_is_a_clean_end(house: House) -> None:
    process = start(house, "Walker")
    assert finish(process) == 0
    assert "budget of evaluations is spent" in process.tail()
    assert house.bench.desk.exhausted == "evaluations"


def test_a_stop_is_a_clean_end(house: House) -> None:
    house.stop.set()
    process = start(house, "Walker")
    assert finish(process) == 0


def test_options_reach_the_method(house: House) -> None:
    assert finish(start(house, "Walker", steps=1)) == 0
    assert house.bench.left().evaluations == 2 and house.bench.desk.exhausted is None


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (f"{PROBES}:Failing", "the method's own mistake"),
        (f"{PROBES}:Nobody", "has no 'Nobody'"),
        ("no_such_package.module:Class", "no module 'no_such_package'"),
        ("tests.suite.no_such_module:Class", "no_such_module"),
    ],
)
def test_a_failing_method_leaves_its_words(house: House, target: str, words: str) -> None:
    process = start(house, target)
    assert finish(process) == 1
    assert words in process.tail()


def test_the_environment_is_scrubbed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///x")
    process = start(house, "Spy")
    assert finish(process) == 0
    names = told(process)["environment"].split()
    allowed = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "PYTHONPATH"}
    assert set(names) <= allowed | {"PYTHONHASHSEED", "PYTHONUNBUFFERED", "DERBY_GATEWAY", "DERBY_TOKEN"}


@fenced
@walls
def test_the_ledger_and_everything_else_of_the_race_is_out_of_reach(house: House, without: frozenset[str]) -> None:
    folder = house.bench.folder.parent
    secret = folder / "secret"
    secret.write_text("seed")
    for read, write in ((secret, folder / "ledger.jsonl"), (folder / "ledger.jsonl", folder / "new")):
        process = start(house, "Spy", without, read=str(read), write=str(write))
        assert finish(process) == 0
        assert all(told(process)[name].startswith("refused") for name in ("read", "write", "parent"))
    assert not (folder / "new").exists()


@fenced
@walls
def test_its_own_code_and_folder_are_within_reach(house: House, without: frozenset[str]) -> None:
    process = start(house, "Spy", without, read=str(Path(__file__)), write=str(house.bench.folder / "mine"))
    assert finish(process) == 0
    assert told(process)["read"].startswith("did: ")
    assert told(process)["write"] == "did: 3"


LONE = """
from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True)
class Lone:
    def search(self, bench):
        import beside
        try:
            beside.SECRET.read_text()
        except OSError:
            print("read: refused")
"""


@fenced
def test_a_method_in_a_single_file_reaches_its_neighbours_but_not_the_races_among_them(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    (place / "runs").mkdir(parents=True)
    (place / "runs" / "secret").write_text("seed")
    (place / "lone.py").write_text(LONE)
    (place / "beside.py").write_text(f"from pathlib import Path\nSECRET = Path({str(place / 'runs' / 'secret')!r})")
    monkeypatch.syspath_prepend(place)
    process = start(house, "lone:Lone")
    assert finish(process) == 0, process.tail()
    assert told(process)["read"] == "refused"


def test_a_race_within_the_methods_package_is_refused(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path.parent)
    process = start(house, f"{tmp_path.name}:Method")
    assert finish(process) == 1
    assert "which the method may read" in process.tail()


@pytest.mark.skipif(landlock.version() < 4, reason="this kernel's landlock does not know TCP")
@walls
def test_only_the_door_can_be_connected_to(house: House, without: frozenset[str]) -> None:
    process = start(house, "Caller", without, port=str(house.url.rsplit(":", 1)[1]))
    assert finish(process) == 0
    assert told(process)["door"] == "did: connected"
    assert told(process)["other"] == "refused: PermissionError"


@walls
def test_its_folder_is_made_anew_at_every_start(house: House, without: frozenset[str]) -> None:
    house.bench.folder.mkdir()
    (house.bench.folder / "leftover").write_text("x")
    process = start(house, "Spy", without)
    assert finish(process) == 0
    assert told(process)["folder"] == "[]"


def test_folders_nested_deeper_than_python_recurses_are_removed_too(house: House) -> None:
    house.bench.folder.mkdir()
    handle = os.open(house.bench.folder, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    assert finish(start(house, "Spy")) == 0
    assert not (house.bench.folder / "d").exists()


def test_a_flood_of_words_is_cut_and_blocks_nobody(house: House) -> None:
    process = start(house, "Chatty")
    assert finish(process) == 0
    assert (house.bench.folder.parent / "method.log").stat().st_size == LOG_LIMIT


def family(process: MethodProcess, word: str) -> list[int]:
    """The method's process and all below it, once it has said this word."""
    until(lambda: word in told(process))
    return [each.pid for each in psutil.Process(process.pid).children(recursive=True)]


@walls
def test_a_daemon_of_the_method_ends_with_it(house: House, without: frozenset[str]) -> None:
    process = start(house, "Daemon", without, stay=True)
    members = family(process, "daemon")
    assert len(members) >= 2
    assert process.end() == 128 + signal.SIGTERM, process.tail()
    assert all(map(gone, members))


@walls
def test_ending_a_method_ends_its_children_too(house: House, without: frozenset[str]) -> None:
    process = start(house, "Idle", without)
    members = family(process, "ready")
    assert not process.wait(0)
    assert process.end() == 128 + signal.SIGTERM
    assert all(map(gone, members))


@walls
def test_a_method_that_ends_leaves_no_child_behind(house: House, without: frozenset[str]) -> None:
    for method, word in (("Orphaning", "child"), ("Daemon", "daemon")):
        process = start(house, method, without)
        assert process.wait(60)
        assert process.end() == 0
        assert told(process)[word] == "up"
        assert not list(running(house.token))


def running(token: str) -> Iterator[psutil.Process]:
    """Processes that were given this token: whatever descends from a method."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("DERBY_TOKEN") == token:
                yield process


PARENT = """
import sys, time
from pathlib import Path
from suite.launch import MethodProcess
from suite.types import MethodSpec
url, token, folder, target = sys.argv[1:]
process = MethodProcess(MethodSpec(name="m", target=target), 1, Path(folder), (url, token))
print(process.pid, flush=True)
time.sleep(3600)
"""


def test_nothing_outlives_a_killed_trial(house: House) -> None:
    arguments = [house.url, house.token, str(house.bench.folder.parent), f"{PROBES}:Idle"]
    with subprocess.Popen([sys.executable, "-c", PARENT, *arguments], stdout=subprocess.PIPE) as parent:
        try:
            log = house.bench.folder.parent / "method.log"
            until(lambda: log.exists() and b"ready" in log.read_bytes())
            members = list(running(house.token))
            assert len(members) >= 3
        finally:
            parent.kill()
    until(lambda: not list(running(house.token)))


def test_everything_dies_with_the_keeper(house: House) -> None:
    for method, word in (("Idle", "ready"), ("Daemon", "daemon")):
        process = start(house, method, stay=True) if method == "Daemon" else start(house, method)
        members = family(process, word)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(60) and process.end() == -9
        until(lambda members=members: all(map(gone, members)))  # type: ignore[misc]
        assert not list(running(house.token))


def test_a_killed_method_is_told_from_a_failed_one(house: House) -> None:
    process = start(house, "Suicidal")
    assert finish(process) == 128 + signal.SIGKILL
