"""The command line: data on stdout, words on stderr, exit codes that say what happened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ray_cluster.console import Exit
from ray_cluster.listing import CARDS
from ray_cluster.race_folder import RaceFolder
from ray_cluster.run import show_results
from suite.events import EVENT, ChampionMeasured
from suite.score import score
from suite.types import Split
from tests.ray_cluster.events import begun, raced
from tests.ray_cluster.stage import card, derby, write_card

Capture = pytest.CaptureFixture[str]
SILENT = {"methods": ["tpe"], "model": None}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with one race of one finished trial (verdicts made up); only read here."""
    folder = tmp_path_factory.mktemp("runs")
    raced(begun(folder, card(**SILENT)).orders()[0])
    return folder


def output(capsys: Capture) -> dict[str, object]:
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    return dict(document)


@pytest.mark.parametrize("what", ["methods", "tasks", "races"])
def test_lists_are_tables_and_json(monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path, what: str) -> None:
    assert derby(monkeypatch, "list", what, "--runs", str(runs)) == Exit.OK
    assert capsys.readouterr().out
    assert derby(monkeypatch, "list", what, "--runs", str(runs), "--json") == Exit.OK
    assert output(capsys)[what]


def test_an_unknown_list_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert derby(monkeypatch, "list", "method") == Exit.USAGE
    assert "did you mean 'methods'" in capsys.readouterr().err


def test_status_reads_the_ledgers(monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path) -> None:
    assert derby(monkeypatch, "status", "trial", "--runs", str(runs), "--json") == Exit.OK
    document = output(capsys)
    trial = document["trials"][0]  # type: ignore[index]
    assert trial["state"] == "finished" and trial["spent"]["evaluations"] == 2 and not trial["failed"]
    assert document["driver"] is None


def test_status_without_a_race_lists_all(monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path) -> None:
    monkeypatch.setenv("DERBY_RUNS", str(runs))
    assert derby(monkeypatch, "status", "--json") == Exit.OK
    assert output(capsys)["races"] == [{"race": "trial", "trials": 1, "finished": 1, "driver": None}]
    assert derby(monkeypatch, "status") == Exit.OK
    assert "trial" in capsys.readouterr().out


def test_the_status_of_an_unknown_race_names_the_known(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path
) -> None:
    assert derby(monkeypatch, "status", "other", "--runs", str(runs)) == Exit.USAGE
    assert "one of trial" in capsys.readouterr().err


def test_stopping_a_race_that_does_not_run_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path
) -> None:
    assert derby(monkeypatch, "stop", "trial", "--runs", str(runs)) == Exit.OK
    assert "not being run" in capsys.readouterr().err


def test_standings_equal_the_score_of_the_champion(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path
) -> None:
    assert derby(monkeypatch, "standings", "--runs", str(runs), "--json") == Exit.OK
    rows = output(capsys)["standings"]
    method = next(row for row in rows if row["kind"] == "method")  # type: ignore[attr-defined]
    folder = RaceFolder(runs, "trial")
    lines = next(folder.path.glob("trials/*/ledger.jsonl")).read_text(encoding="utf-8").splitlines()
    events = [EVENT.validate_python(json.loads(line)["event"]) for line in lines]
    champion = next(event for event in events if isinstance(event, ChampionMeasured))
    assert method["heldout_speedup"] == pytest.approx(score(champion.evaluation, Split.HELDOUT).value)
    assert derby(monkeypatch, "standings", "--runs", str(runs)) == Exit.OK
    assert "tpe" in capsys.readouterr().out


def test_standings_say_which_ledger_is_damaged(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    ledger = next((tmp_path / "runs").glob("*/trials/*/ledger.jsonl"))
    first, *rest = ledger.read_text(encoding="utf-8").splitlines()
    ledger.write_text("\n".join([first, *rest[1:]]) + "\n", encoding="utf-8")
    assert derby(monkeypatch, "standings", "--runs", str(tmp_path / "runs")) == Exit.OK
    said = capsys.readouterr().err
    assert ledger.parent.name in said.replace("\n", "") and "expected" in said


def test_standings_of_a_race_that_is_not_there_name_those_that_are(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, runs: Path
) -> None:
    assert derby(monkeypatch, "standings", "trail", "--runs", str(runs)) == Exit.USAGE
    assert "one of trial" in capsys.readouterr().err


def test_a_rebuild_makes_no_folder_of_a_misspelt_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert derby(monkeypatch, "rebuild", "--runs", str(tmp_path / "rnus")) == Exit.USAGE
    assert not (tmp_path / "rnus").exists()


def test_a_dry_run_shows_the_matrix_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    path, runs = write_card(tmp_path, seeds=2), tmp_path / "runs"
    assert derby(monkeypatch, "run", str(path), "--runs", str(runs), "--dry-run", "--json") == Exit.OK
    document = output(capsys)
    assert document["trials"] == 4 and document["calls"] == 4 and document["usd"] == [0.0, 0.0]
    assert not runs.exists()
    assert derby(monkeypatch, "run", str(path), "--runs", str(runs), "--dry-run") == Exit.OK
    assert "4 trials" in capsys.readouterr().out


def test_a_dry_run_counts_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, runs: Path
) -> None:
    path = write_card(tmp_path)
    text = path.read_text(encoding="utf-8").replace('"best_of_n", ', "")
    path.write_text(text[: text.index("[model]")] + text[text.index("[budget]") :], encoding="utf-8")
    assert derby(monkeypatch, "run", str(path), "--runs", str(runs), "--dry-run", "--json") == Exit.OK
    document = output(capsys)
    assert [state["state"] for state in document["trial_states"]] == ["finished"]  # type: ignore[attr-defined]
    assert document["judge_s"] == 0


def test_a_dry_run_knows_that_champions_are_measured_longer_and_in_a_brief_race_less_so(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    text, judging = write_card(tmp_path).read_text(encoding="utf-8"), {}
    for timing in ("standard", "brief", "tiny"):
        (tmp_path / "timed.toml").write_text(text.replace('timing = "tiny"', f'timing = "{timing}"'), encoding="utf-8")
        card = str(tmp_path / "timed.toml")
        assert derby(monkeypatch, "run", card, "--runs", str(tmp_path / "runs"), "--dry-run", "--json") == Exit.OK
        judging[timing] = output(capsys)["judge_s"]
    assert judging["standard"] > judging["brief"] > judging["tiny"] > 0  # type: ignore[operator]


def test_an_unknown_price_is_unknown_and_not_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    path = write_card(tmp_path)
    text = path.read_text(encoding="utf-8").replace('"tuner"', '"openai"', 1)
    path.write_text(text, encoding="utf-8")
    assert derby(monkeypatch, "run", str(path), "--runs", str(tmp_path), "--dry-run") == Exit.OK
    assert "unknown price" in capsys.readouterr().out


def test_a_bad_card_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    path = write_card(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("seeds", "sedes"), encoding="utf-8")
    assert derby(monkeypatch, "run", str(path), "--runs", str(tmp_path)) == Exit.USAGE
    error = capsys.readouterr().err
    assert "sedes" in error and "seeds" in error and "Traceback" not in error


def test_a_missing_key_stops_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = write_card(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('"tuner"', '"openai"', 1), encoding="utf-8")
    runs = tmp_path / "runs"
    assert derby(monkeypatch, "run", str(path), "--runs", str(runs)) == Exit.USAGE
    assert "OPENAI_API_KEY" in capsys.readouterr().err
    assert not runs.exists()


def test_a_runs_folder_that_can_not_be_made_is_an_environment_error(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    path, file = write_card(tmp_path), tmp_path / "file"
    file.touch()
    assert derby(monkeypatch, "run", str(path), "--runs", str(file)) == Exit.ENVIRONMENT
    said = capsys.readouterr().err
    assert str(file) in said and "expected:" in said and "do:" in said and "Traceback" not in said


def test_a_damaged_ledger_of_a_finished_race_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    race = begun(tmp_path, card(**SILENT))
    order = race.orders()[0]
    raced(order)
    ledger = order.folder / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert not show_results(race, (), as_json=True)
    said = capsys.readouterr().err
    assert "missing or reordered" in said and "expected:" in said and "do:" in said


def test_a_port_is_a_port(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    assert derby(monkeypatch, "board", "--port", "99999999", "--runs", str(tmp_path)) == Exit.USAGE
    assert "65535" in capsys.readouterr().err


def test_a_race_that_is_being_run_is_not_run_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    path, folder = write_card(tmp_path), RaceFolder(tmp_path, "trial")
    with folder.hold():
        assert derby(monkeypatch, "run", str(path), "--runs", str(tmp_path)) == Exit.USAGE
    assert "derby status trial" in capsys.readouterr().err


def test_the_cards_of_the_suite_are_good(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    trials = {}
    for path in CARDS.glob("*.toml"):
        assert derby(monkeypatch, "run", str(path), "--runs", str(tmp_path), "--dry-run", "--json") == Exit.OK
        trials[path.stem] = output(capsys)["trials"]
    assert trials == {"demo": 8, "smoke": 2}


def test_help_names_every_command(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert derby(monkeypatch, "--help") == Exit.OK
    shown = capsys.readouterr().out
    for command in ("demo", "run", "check", "status", "stop", "list", "standings", "board", "rebuild", "admit"):
        assert command in shown
