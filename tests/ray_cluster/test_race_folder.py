"""A race folder has one driver, keeps its secret and its card, and opens the secret only at the end."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ray_cluster.matrix import ResolvedRace, courses, resolve_race
from ray_cluster.race_folder import RaceFolder, commitment, differences, races, specs
from suite.errors import CardError, UserError
from suite.task import draw_heldout
from tests.ray_cluster.stage import card


def resolved(**changes: object) -> ResolvedRace:
    one = card(**changes)
    return resolve_race(one, courses(one))


def test_the_secret_is_made_once_and_is_private(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "race")
    with folder.hold():
        secret = folder.secret()
        assert folder.secret() == secret and len(secret) == 32
    assert stat.S_IMODE(os.stat(folder.path / "secret").st_mode) == 0o600
    assert commitment(secret) == hashlib.sha256(secret).hexdigest()


def test_a_damaged_secret_is_not_replaced(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "race")
    with folder.hold():
        (folder.path / "secret").write_text("abc", encoding="ascii")
        with pytest.raises(UserError, match="not a race's secret"):
            folder.secret()


def test_a_lost_secret_is_not_replaced(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "trial")
    with folder.hold():
        folder.secret()
        folder.settle(resolved())
    (folder.path / "secret").unlink()
    with pytest.raises(UserError, match="is gone"):
        folder.secret()
    assert not (folder.path / "secret").exists()


def test_a_second_driver_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "race")
    with folder.hold():
        assert folder.driver() == os.getpid()
        with pytest.raises(UserError, match=f"run by process {os.getpid()}"), RaceFolder(tmp_path, "race").hold():
            pass
    assert folder.driver() is None
    with folder.hold():
        pass


def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from ray_cluster.race_folder import RaceFolder\n"
        "with RaceFolder(Path(sys.argv[1]), 'race').hold():\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    folder = RaceFolder(tmp_path, "race")
    assert folder.driver() == holder.pid
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert folder.driver() is None
    with folder.hold():
        assert folder.driver() == os.getpid()


def test_an_unchanged_card_settles_again_and_its_trials_are_found(tmp_path: Path) -> None:
    folder, race = RaceFolder(tmp_path, "trial"), resolved()
    with folder.hold():
        folder.settle(race)
        folder.settle(race)
    assert folder.resolved() == race
    assert specs(folder) == race.trials
    assert [one.race for one in races(tmp_path)] == ["trial"]


def test_a_changed_card_is_refused_with_the_difference(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "trial")
    with folder.hold():
        folder.settle(resolved())
        with pytest.raises(CardError) as caught:
            folder.settle(resolved(budget={"evaluations": 5}))
    assert "card.budget.evaluations: 2 -> 5" in caught.value.came
    assert "--fresh" in caught.value.todo


def test_where_a_race_runs_may_change() -> None:
    assert differences(resolved(), resolved(judges=1, trials_at_once=3)) == []


def test_moving_aside_keeps_the_old_race(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "trial")
    assert folder.move_aside() is None
    with folder.hold():
        folder.settle(resolved())
    aside = folder.move_aside()
    assert aside is not None and (aside / "card.json").is_file()
    assert not folder.path.exists() and races(tmp_path) == []


def test_a_running_race_is_not_moved(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "trial")
    with folder.hold(), pytest.raises(UserError, match="being run"):
        folder.move_aside()
    assert folder.path.exists()


def test_the_revealed_secret_draws_the_same_workloads(tmp_path: Path) -> None:
    folder = RaceFolder(tmp_path, "trial")
    task = next(iter(courses(card()).values())).task
    with folder.hold():
        promised = commitment(folder.secret())
        folder.reveal({task.name: draw_heldout(task, folder.secret())})
    shown = json.loads((folder.path / "reveal.json").read_text(encoding="utf-8"))
    secret = bytes.fromhex(shown["secret"])
    assert shown["commitment"] == promised == commitment(secret)
    assert shown["heldout"][task.name] == [one.model_dump(mode="json") for one in draw_heldout(task, secret)]


def test_an_absent_race_names_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="begin a race"):
        specs(RaceFolder(tmp_path, "none"))
    folder = RaceFolder(tmp_path, "trial")
    with folder.hold():
        folder.settle(resolved())
    with pytest.raises(UserError, match="one of trial"):
        specs(RaceFolder(tmp_path, "none"))


@pytest.mark.parametrize("damaged", [b"{}", b"", b"\xff\xfe", b"[" * 1000])
def test_an_unreadable_card_or_price_is_said(tmp_path: Path, damaged: bytes) -> None:
    folder = RaceFolder(tmp_path, "trial")
    folder.path.mkdir()
    for name in ("card.json", "price.json"):
        (folder.path / name).write_bytes(damaged)
    with pytest.raises(UserError, match=r"card\.json cannot be read"):
        specs(folder)
    with pytest.raises(UserError, match=r"price\.json cannot be read"):
        folder.price()
