"""A method's process gets what it needs and nothing else, and nothing of it outlives the trial's process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from suite import confine
from suite.launch import LOG_LIMIT, MethodProcess
from suite.scripted import ScriptedModel
from suite.types import Budget, MethodSpec
from tests.suite.stage import PROBES
from tests.suite.test_gateway import House, open_house

fenced = pytest.mark.skipif(confine.abi() == 0, reason="this kernel has no landlock")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path, ScriptedModel(["// a reply"]), Budget(evaluations=3)) as opened:
        yield opened


def start(house: House, method: str, **options: str) -> MethodProcess:
    target = method if ":" in method else f"{PROBES}:{method}"
    spec = MethodSpec(name=method, target=target, options=dict(options))
    return MethodProcess(spec, 7, house.bench.folder.parent, house.url, house.token)


def finish(process: MethodProcess) -> int:
    assert process.wait(60)
    return process.end()


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
    spec = MethodSpec(name="walker", target=f"{PROBES}:Walker", options={"steps": 1})
    process = MethodProcess(spec, 7, house.bench.folder.parent, house.url, house.token)
    assert finish(process) == 0
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
    names = (house.bench.folder / "environment").read_text().split()
    allowed = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "PYTHONPATH"}
    assert set(names) <= allowed | {"PYTHONHASHSEED", "PYTHONUNBUFFERED", "DERBY_GATEWAY", "DERBY_TOKEN"}


@fenced
def test_the_ledger_and_everything_else_of_the_race_is_out_of_reach(house: House) -> None:
    folder = house.bench.folder.parent
    secret = folder / "secret"
    secret.write_text("seed")
    for read, write in ((secret, folder / "ledger.jsonl"), (folder / "ledger.jsonl", folder / "new")):
        assert finish(start(house, "Spy", read=str(read), write=str(write))) == 0
        assert (house.bench.folder / "read").read_text() == "refused: PermissionError"
        assert (house.bench.folder / "write").read_text() == "refused: PermissionError"
        assert (house.bench.folder / "keeper").read_text() == "refused: PermissionError"
    assert not (folder / "new").exists()


@fenced
def test_its_own_code_and_folder_are_within_reach(house: House) -> None:
    folder = house.bench.folder
    assert finish(start(house, "Spy", read=str(Path(__file__)), write=str(folder / "mine"))) == 0
    assert (folder / "read").read_text().startswith("did: ")
    assert (folder / "write").read_text() == "did: 3"


LONE = """
from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True)
class Lone:
    def search(self, bench):
        import beside
        try:
            beside.SECRET.read_text()
        except PermissionError:
            (bench.folder / "read").write_text("refused")
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
    assert (house.bench.folder / "read").read_text() == "refused"


@pytest.mark.skipif(confine.abi() < 4, reason="this kernel's landlock does not know TCP")
def test_only_the_door_can_be_connected_to(house: House) -> None:
    process = start(house, "Caller", port=str(house.url.rsplit(":", 1)[1]))
    assert finish(process) == 0
    assert (house.bench.folder / "door").read_text() == "did: connected"
    assert (house.bench.folder / "other").read_text() == "refused: PermissionError"


def test_its_folder_is_made_anew_at_every_start(house: House) -> None:
    house.bench.folder.mkdir()
    (house.bench.folder / "leftover").write_text("x")
    finish(start(house, "Spy"))
    assert not (house.bench.folder / "leftover").exists()


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


def test_a_daemon_of_the_method_ends_with_it(house: House) -> None:
    process = start(house, "Daemon")
    assert finish(process) == 0, process.tail()
    assert gone(int((house.bench.folder / "daemon").read_text()))


def test_a_flood_of_words_is_cut_and_blocks_nobody(house: House) -> None:
    process = start(house, "Chatty")
    assert finish(process) == 0
    assert (house.bench.folder.parent / "method.log").stat().st_size == LOG_LIMIT


def pids(house: House) -> list[int]:
    file = house.bench.folder / "pids"
    until(lambda: file.exists() and len(file.read_text().split()) == 2)
    return [int(word) for word in file.read_text().split()]


def test_ending_a_method_ends_its_children_too(house: House) -> None:
    process = start(house, "Idle")
    members = pids(house)
    assert not process.wait(0)
    assert process.end() != 0
    until(lambda: all(map(gone, members)))


def test_a_method_that_ends_leaves_no_child_behind(house: House) -> None:
    process = start(house, "Orphaning")
    assert process.wait(60)
    child = int((house.bench.folder / "child").read_text())
    assert process.end() == 0
    until(lambda: gone(child))


PARENT = """
import sys, time
from pathlib import Path
from suite.launch import MethodProcess
from suite.types import MethodSpec
url, token, folder, target = sys.argv[1:]
process = MethodProcess(MethodSpec(name="m", target=target), 1, Path(folder), url, token)
time.sleep(3600)
"""


def test_nothing_outlives_a_killed_trial(house: House) -> None:
    arguments = [house.url, house.token, str(house.bench.folder.parent), f"{PROBES}:Idle"]
    with subprocess.Popen([sys.executable, "-c", PARENT, *arguments]) as parent:
        try:
            members = pids(house)
            keeper = psutil.Process(members[0]).ppid()
            assert psutil.Process(keeper).ppid() == parent.pid
        finally:
            parent.kill()
    until(lambda: all(map(gone, [*members, keeper])))


def test_a_method_dies_with_its_keeper(house: House) -> None:
    process = start(house, "Idle")
    method, _ = pids(house)
    os.kill(psutil.Process(method).ppid(), signal.SIGKILL)
    assert process.wait(60) and process.end() == -9
    until(lambda: gone(method))


def test_a_killed_method_is_told_from_a_failed_one(house: House) -> None:
    process = start(house, "Suicidal")
    assert finish(process) == 128 + signal.SIGKILL
