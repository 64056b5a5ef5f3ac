"""A whole race through the command line, with the real judge: run, stopped, resumed, and done once."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from ray_cluster.console import Exit
from ray_cluster.follow import Standing
from ray_cluster.race_folder import RaceFolder, commitment, specs
from tests.ray_cluster.stage import derby_process, write_card

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def wait_for_an_evaluation(folder: RaceFolder, driver: subprocess.Popen[str]) -> None:
    while driver.poll() is None:
        if folder.resolved() is not None:
            standing = Standing(folder, specs(folder))
            standing.update()
            if any(trial.spent.evaluations >= 1 for trial in standing.rows):
                return
        time.sleep(0.2)
    raise AssertionError(driver.communicate()[1])


def test_a_race_is_stopped_in_order_goes_on_and_is_then_done(tmp_path: Path) -> None:
    card, runs = write_card(tmp_path, evaluations=4), tmp_path / "runs"
    command = ("run", str(card), "--runs", str(runs), "--json")
    folder = RaceFolder(runs, "trial")

    first = derby_process(*command)
    wait_for_an_evaluation(folder, first)
    family = psutil.Process(first.pid).children(recursive=True)
    second = derby_process(*command)
    assert second.communicate()[1].find("being run by process") > 0 and second.returncode == Exit.USAGE
    first.send_signal(signal.SIGINT)
    _, words = first.communicate()
    assert first.returncode == Exit.INTERRUPTED, words
    assert "go on with: derby run" in words and "Traceback" not in words
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert not (folder.path / "reveal.json").exists()

    again = derby_process(*command)
    out, words = again.communicate()
    assert again.returncode in (Exit.OK, Exit.FAILED), words
    document = json.loads(out)
    assert {trial["state"] for trial in document["trials"]} == {"finished"}
    assert {trial["spent"]["evaluations"] for trial in document["trials"]} == {4}
    shown = json.loads((folder.path / "reveal.json").read_text(encoding="utf-8"))
    assert shown["commitment"] == commitment(bytes.fromhex(shown["secret"]))

    ledgers = {path: path.read_bytes() for path in folder.path.glob("trials/*/ledger.jsonl")}
    done = derby_process(*command)
    assert json.loads(done.communicate()[0])["trials"] == document["trials"]
    assert {path: path.read_bytes() for path in ledgers} == ledgers


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    card, runs = write_card(tmp_path, evaluations=40), tmp_path / "runs"
    driver = derby_process("run", str(card), "--runs", str(runs))
    wait_for_an_evaluation(RaceFolder(runs, "trial"), driver)
    family = psutil.Process(driver.pid).children(recursive=True)
    driver.send_signal(signal.SIGINT)
    time.sleep(0.2)
    driver.send_signal(signal.SIGINT)
    driver.communicate()
    assert driver.returncode == Exit.INTERRUPTED
    assert psutil.wait_procs(family, timeout=30)[1] == []
