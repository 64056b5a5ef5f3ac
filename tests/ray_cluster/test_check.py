"""`derby check` says in words, numbers and exit code whether a kernel is right and fast, without Ray or MLflow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ray_cluster.check import as_document, measurements_table, report, verdict
from ray_cluster.console import Exit
from suite.scripted import ScriptedEvaluator
from suite.types import Evaluation, Job, Status, Tier
from tests.ray_cluster.stage import FIXTURE, derby
from tests.suite.stage import HELDOUT, candidate, task

KERNEL = str(FIXTURE / "kernel.cpp")


def judged(wish: str, tier: Tier = Tier.SEARCH) -> Evaluation:
    one = candidate(f"// scripted: {wish}")
    heldout = HELDOUT if tier is Tier.CHAMPION else ()
    return ScriptedEvaluator().evaluate(Job(task=task(), candidate=one, tier=tier, heldout=heldout))


@pytest.mark.parametrize(
    ("wish", "words"), [("2.0", "faster than the baseline"), ("0.5", "slower than the baseline"), ("1.5", "1.500×")]
)
def test_the_verdict_says_how_it_compares(wish: str, words: str) -> None:
    sentences = verdict(judged(wish))
    assert sentences[0].startswith("PASSED") and words in sentences[0]
    assert "--champion" in sentences[1]


def test_the_long_tier_tells_the_held_out_speedup() -> None:
    assert any("held-out" in sentence for sentence in verdict(judged("2.0", Tier.CHAMPION)))


def test_a_busy_machine_is_said() -> None:
    busy = judged("2.0").model_copy(update={"busy": True})
    assert any("busy" in sentence for sentence in verdict(busy))


def test_a_failure_is_named_with_its_stage() -> None:
    failed = judged("INCORRECT_NUMERICAL")
    assert verdict(failed) == ["FAILED at check: INCORRECT_NUMERICAL. scripted INCORRECT_NUMERICAL"]
    assert report(failed, as_json=False) is Exit.FAILED


def test_the_table_has_a_row_for_each_timed_workload() -> None:
    assert measurements_table(judged("2.0")).row_count == 2
    assert measurements_table(judged("2.0", Tier.CHAMPION)).row_count == 3


def test_the_document_is_json_even_where_an_error_is_infinite(capsys: pytest.CaptureFixture[str]) -> None:
    one = judged("2.0")
    assert report(one, as_json=True) is Exit.OK
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1 and document["kind"] == "check"
    assert document["score"]["search"]["value"] == pytest.approx(2.0)
    assert [item["candidate_us"] for item in as_document(one)["workloads"]] == pytest.approx([500.0, 500.0])  # type: ignore[union-attr,index,call-overload]


@pytest.mark.parametrize(
    ("arguments", "came"),
    [
        (("check", "gqa_paged_decode_h32_kv4", KERNEL), "there is no task"),
        (("check", str(FIXTURE), "nowhere.cpp"), "nowhere.cpp"),
        (("check", str(FIXTURE), str(FIXTURE / "task.toml")), "task.toml"),
        (("check", str(FIXTURE), KERNEL, "--lane", "sm12"), "lane"),
    ],
)
def test_what_cannot_be_checked_is_said_in_three_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], came: str
) -> None:
    assert derby(monkeypatch, *arguments) == Exit.USAGE
    printed = capsys.readouterr()
    assert printed.out == "" and came in printed.err
    assert "expected: " in printed.err and "do: " in printed.err and "Traceback" not in printed.err


def test_a_missing_compiler_is_an_environment_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert derby(monkeypatch, "check", str(FIXTURE), KERNEL) == Exit.ENVIRONMENT
    assert "apt-get install g++" in capsys.readouterr().err


@pytest.mark.slow
def test_it_loads_neither_ray_nor_mlflow() -> None:
    code = (
        "import sys; from ray_cluster.main import main\n"
        "sys.argv = ['derby', 'check', 'no-such-task', 'x.cpp']\n"
        "import ray_cluster.check\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import suite.judge.judge\n"
        "print([name for name in ('ray', 'mlflow', 'streamlit', 'optuna', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "splits"), [((), {"search"}), (("--champion",), {"search", "heldout"})])
def test_a_real_kernel_is_judged(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    tier: tuple[str, ...],
    splits: set[str],
) -> None:
    monkeypatch.setenv("DERBY_CACHE", str(tmp_path))
    assert derby(monkeypatch, "check", str(FIXTURE), KERNEL, "--timing", "tiny", "--json", *tier) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == Status.PASSED and set(document["score"]) == splits
    assert document["sandbox"]


@pytest.mark.slow
def test_a_real_kernel_that_is_wrong_fails_with_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DERBY_CACHE", str(tmp_path))
    wrong = tmp_path / "wrong.cpp"
    wrong.write_text(Path(KERNEL).read_text(encoding="utf-8").replace("alpha * x[i]", "x[i]"), encoding="utf-8")
    assert derby(monkeypatch, "check", str(FIXTURE), str(wrong), "--timing", "tiny") == Exit.FAILED
    assert "FAILED at check" in capsys.readouterr().out
