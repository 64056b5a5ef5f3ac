"""Every cheat gets the verdict it deserves, or is scored at its true speed; the judge is as well afterwards as before.

The screen, which refuses some of these by reading them, is switched off: what is tested is that running them is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from suite.judge.judge import Judge
from suite.judge.plan import TINY, JudgeSettings
from suite.score import score
from suite.task import load
from suite.types import Evaluation, Job, Status, Task, Tier
from tests.cheats.cases import KERNELS, ROOT, Cheat, candidate, read

pytestmark = pytest.mark.slow
CHEATS = [read(path) for path in KERNELS]
TRACES = (Path("/tmp/derby-escape"), Path("/dev/shm/derby-escape"))


@pytest.fixture(scope="module")
def task() -> Task:
    return load(ROOT / "tasks" / "gqa_paged_decode_h32_kv4_d128_ps1")


@pytest.fixture(scope="module")
def judge(fresh_cache: Callable[[], Path]) -> Iterator[Judge]:
    settings = JudgeSettings(cache=fresh_cache(), search=TINY, screen=False)
    with Judge(settings) as judge:
        yield judge


@pytest.fixture(scope="module")
def honest(judge: Judge, task: Task, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    control = next(cheat for cheat in CHEATS if cheat.path.stem == "control_right")
    return judged(judge, task, control, tmp_path_factory.mktemp("control"))


def judged(judge: Judge, task: Task, cheat: Cheat, folder: Path) -> Evaluation:
    return judge.evaluate(Job(task=task, candidate=candidate(cheat, task, folder), tier=Tier.SEARCH))


def check_speed(cheat: Cheat, evaluation: Evaluation, honest: Evaluation) -> None:
    speed = score(evaluation).value
    if cheat.speed == "below 1.0":
        assert speed < 1.0
    elif cheat.speed == "no faster than control_right":
        # Twice leaves room for a noisy machine; an unstopped burner gains more by slowing the baseline down.
        assert speed < 2 * score(honest).value
    else:
        assert cheat.speed == "any"


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.path.stem)
def test_a_cheat_gets_the_verdict_it_deserves(
    cheat: Cheat, judge: Judge, task: Task, honest: Evaluation, tmp_path: Path
) -> None:
    evaluation = judged(judge, task, cheat, tmp_path)
    assert evaluation.status in cheat.verdicts, (evaluation.failure, evaluation.log)
    if evaluation.status == Status.PASSED:
        check_speed(cheat, evaluation, honest)
    assert not [path for path in TRACES if path.exists()]
    assert not [process for process in psutil.process_iter(["name"]) if process.info["name"] == "derby-daemon"]


def test_the_judge_is_well_after_all_of_them(judge: Judge, task: Task, honest: Evaluation, tmp_path: Path) -> None:
    right = next(cheat for cheat in CHEATS if cheat.path.stem == "control_right")
    assert honest.status == Status.PASSED
    assert judged(judge, task, right, tmp_path).status == Status.PASSED


def test_at_least_ten_tricks_are_tried_beside_two_controls() -> None:
    controls = [cheat for cheat in CHEATS if cheat.catalogue == "control"]
    assert len(controls) == 2 and len(CHEATS) - len(controls) >= 10
