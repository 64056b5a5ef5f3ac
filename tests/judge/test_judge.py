"""Every ending of a candidate has its name, stage and words a search can use; a failure of ours is none of them."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from suite.errors import InfraError
from suite.judge.judge import Judge
from suite.task import draw_heldout, load
from suite.types import TIMING_PROTOCOL, Candidate, Evaluation, Failure, Job, Split, Status, Task, Tier
from tests.judge.conftest import FIXTURE
from tests.judge.kernels import ADD, PYTHON, RETURNING, cpp, expert, python


def search(judge: Judge, task: Task, candidate: Candidate) -> Evaluation:
    return judge.evaluate(Job(task=task, candidate=candidate, tier=Tier.SEARCH))


def failure(evaluation: Evaluation) -> Failure:
    assert evaluation.failure is not None, evaluation
    return evaluation.failure


def processes() -> set[str]:
    return {entry for entry in os.listdir("/proc") if entry.isdigit() and _is_below_us(entry)}


def _is_below_us(pid: str) -> bool:
    while pid not in ("0", "1"):
        if pid == str(os.getpid()):
            return True
        try:
            pid = (Path("/proc") / pid / "stat").read_text().rpartition(")")[2].split()[1]
        except FileNotFoundError:
            return False
    return False


# ---------------------------------------------------------------------------------------------- right candidates


def test_the_baseline_passes_and_everything_is_on_record(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, expert(task))
    assert verdict.failure is None and verdict.status == Status.PASSED, verdict.failure
    assert (verdict.candidate, verdict.task_digest) == (expert(task).id, task.digest)
    assert (verdict.timing_protocol, verdict.lane, verdict.tier) == (f"{TIMING_PROTOCOL}-custom", "cpu", Tier.SEARCH)
    assert verdict.device and verdict.sandbox
    assert verdict.stages_s.keys() == {"screen", "build", "start", "check", "timing"}


def test_search_workloads_carry_raw_quads_and_check_workloads_none(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, expert(task))
    by_split = {split: [one for one in verdict.measurements if one.workload.split == split] for split in Split}
    assert [one.workload for one in by_split[Split.SEARCH]] == list(task.split(Split.SEARCH))
    assert [one.workload for one in by_split[Split.CHECK]] == list(task.split(Split.CHECK))
    assert all(one.correctness and not one.launches for one in by_split[Split.CHECK])
    for one in by_split[Split.SEARCH]:
        (launch,) = one.launches
        assert len(launch.candidate_us) == len(launch.baseline_us) >= 4
        assert len(launch.candidate_us) % 2 == 0
        assert min(launch.candidate_us + launch.baseline_us) > 0 < launch.overhead_us
        assert one.correctness is not None and one.correctness.referenced >= 1
        assert one.correctness.compared >= 1 + len(launch.candidate_us)
        assert one.bytes_moved and one.flops


@pytest.mark.parametrize("candidate", [cpp(ADD), python(PYTHON), python(RETURNING, in_place=False)])
def test_right_candidates_of_every_kind_pass(judge: Judge, task: Task, candidate: Candidate) -> None:
    verdict = search(judge, task, candidate)
    assert verdict.status == Status.PASSED, verdict.failure


@pytest.mark.slow
def test_a_champion_is_timed_in_several_launches_on_heldout_workloads_too(judge: Judge, task: Task) -> None:
    heldout = draw_heldout(task, b"seed")
    verdict = judge.evaluate(Job(task=task, candidate=expert(task), tier=Tier.CHAMPION, heldout=heldout))
    timed = [one for one in verdict.measurements if one.launches]
    assert verdict.status == Status.PASSED
    assert [one.workload for one in timed] == [*task.split(Split.SEARCH), *heldout]
    assert {len(one.launches) for one in timed} == {3}


def test_the_search_tier_never_touches_heldout_workloads(judge: Judge, task: Task) -> None:
    job = Job(task=task, candidate=expert(task), tier=Tier.SEARCH, heldout=draw_heldout(task, b"seed"))
    assert not [one for one in judge.evaluate(job).measurements if one.workload.split == Split.HELDOUT]


# ---------------------------------------------------------------------------------------------- failing candidates


def test_a_refused_source_is_never_built(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, cpp(f'system("true"); {ADD}'))
    assert (verdict.status, failure(verdict).stage) == (Status.POLICY, "screen")
    assert verdict.stages_s.keys() == {"screen"} and not verdict.measurements


def test_a_source_that_does_not_compile_keeps_the_compilers_words(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, cpp("nonsense();"))
    assert (verdict.status, failure(verdict).stage) == (Status.COMPILE_ERROR, "build")
    assert "nonsense" in verdict.log


def test_a_module_that_does_not_import_fails_at_the_start(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, python("def run(x, y, alpha, out, total): pass\nraise ValueError('on import')"))
    assert (verdict.status, failure(verdict).stage) == (Status.RUNTIME_ERROR, "start")
    assert "on import" in failure(verdict).detail


ENDINGS = {
    "wrong": (f"{ADD} out[0] += 1.0f;", Status.INCORRECT_NUMERICAL, "times the allowed error"),
    "nothing written": ("", Status.INCORRECT_NUMERICAL, "256 of 256 elements of out and 1 of 1 elements of total"),
    "one output only": ("float t[8]; float* s = rows > 8 ? total : t; add(x, y, alpha, out, s, rows);",
                        Status.INCORRECT_NUMERICAL, "1 of 1 elements of total were never written"),
    "past the end": (f"{ADD} total[rows] = 0.0f;", Status.OUT_OF_BOUNDS, "4 bytes after total"),
    "before the start": (f"{ADD} out[-1] = 0.0f;", Status.OUT_OF_BOUNDS, "4 bytes before out"),
    "input written": (f"const_cast<float*>(x)[0] = 0.0f; {ADD}", Status.RUNTIME_ERROR, "SIG"),
    "crash": ("abort();", Status.RUNTIME_ERROR, "SIGABRT"),
    "error code": ("return 3;", Status.RUNTIME_ERROR, "3"),
    "early exit": (f"{ADD} exit(0);", Status.RUNTIME_ERROR, "exit"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDINGS)
def test_endings_in_the_check_split(judge: Judge, task: Task, case: str) -> None:
    body, status, words = ENDINGS[case]
    verdict = search(judge, task, cpp(body))
    assert (verdict.status, failure(verdict).stage, failure(verdict).workload) == (status, "check", "check"), verdict
    assert words in failure(verdict).detail
    assert not [one for one in verdict.measurements if one.launches]


@pytest.mark.slow
def test_a_kernel_that_never_returns_times_out(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, cpp(f"{ADD} for (volatile int i = 0;; i = 1) {{}}"))
    assert (verdict.status, failure(verdict).stage) == (Status.TIMEOUT, "check")


def test_calls_that_are_slow_together_time_out(judge: Judge, task: Task) -> None:
    hasty = task.model_copy(update={"timeout_s": 0.2})
    verdict = search(judge, hasty, python("import time\n" + PYTHON + "    time.sleep(0.18)\n"))
    assert (verdict.status, failure(verdict).stage) == (Status.TIMEOUT, "check")


def test_what_is_wrong_at_the_timed_shapes_only_fails_there(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, cpp(f"{ADD} if (rows > 100 && alpha == 0.5f) out[256 * 99] += 1.0f;"))
    first = task.split(Split.SEARCH)[0]
    assert (verdict.status, failure(verdict).stage) == (Status.INCORRECT_NUMERICAL, "timing")
    assert failure(verdict).workload == first.uuid
    assert verdict.measurements[-1].status == Status.INCORRECT_NUMERICAL
    assert verdict.measurements[-1].workload == first


def test_what_holds_for_the_timed_contents_alone_may_not_be_assumed_at_the_timed_shapes(
    judge: Judge, task: Task
) -> None:
    halved = cpp("add(x, y, rows > 100 ? 0.5f : alpha, out, total, rows);")  # alpha is 0.5 wherever it is timed
    champion = judge.evaluate(Job(task=task, candidate=halved, tier=Tier.CHAMPION, heldout=draw_heldout(task, b"seed")))
    for verdict in (search(judge, task, halved), champion):
        assert (verdict.status, failure(verdict).stage) == (Status.INCORRECT_NUMERICAL, "check")
        assert "'positive'" in failure(verdict).detail


def test_an_answer_kept_from_an_earlier_call_is_wrong(judge: Judge, task: Task) -> None:
    kept = "static float a[6000 * 256], b[6000]; static int64_t known = 0;"
    body = f"{kept} if (known != rows) add(x, y, alpha, a, b, known = rows);"
    body += (
        "for (int64_t i = 0; i < rows * 256; ++i) out[i] = a[i]; for (int64_t r = 0; r < rows; ++r) total[r] = b[r];"
    )
    verdict = search(judge, task, cpp(body))
    assert verdict.status == Status.INCORRECT_NUMERICAL


def test_work_done_only_in_the_first_call_of_a_shape_is_wrong(judge: Judge, task: Task) -> None:
    verdict = search(judge, task, cpp(f"static int calls = 0; if (rows < 100 || calls++ == 0) {ADD}"))
    assert (verdict.status, failure(verdict).stage) == (Status.INCORRECT_NUMERICAL, "timing")
    assert "never written" in failure(verdict).detail


# ---------------------------------------------------------------------------------------------- around the verdict


@pytest.mark.slow
def test_what_a_candidate_prints_is_kept_and_capped(judge: Judge, task: Task) -> None:
    flood = cpp(f'{ADD} for (int i = 0; i < 20000; ++i) printf("hello %d\\n", i); fflush(stdout);')
    verdict = search(judge, task, flood)
    assert verdict.status == Status.PASSED
    assert "hello 17" in verdict.log
    assert len(verdict.log.encode()) <= 64 << 10


def test_no_process_outlives_an_evaluation(judge: Judge, task: Task) -> None:
    search(judge, task, expert(task))
    before = processes()
    for body in (ADD, "abort();"):
        search(judge, task, cpp(body))
    assert processes() == before


@pytest.mark.slow
def test_two_callers_are_served_one_after_the_other(judge: Judge, task: Task) -> None:
    verdicts: list[Evaluation] = []
    threads = [threading.Thread(target=lambda: verdicts.append(search(judge, task, expert(task)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 2
    assert max(verdict.queued_s for verdict in verdicts) > min(verdict.queued_s for verdict in verdicts)


@pytest.mark.parametrize("body", ["abort();", "nonsense();", f"{ADD} out[0] += 1.0f;"])
def test_a_broken_baseline_is_our_failure_not_the_candidates(judge: Judge, tmp_path: Path, body: str) -> None:
    folder = tmp_path / FIXTURE.name
    shutil.copytree(FIXTURE, folder)
    (folder / "kernel.cpp").write_text(cpp(body).text())
    with pytest.raises(InfraError, match="baseline"):
        search(judge, load(folder), cpp(ADD))


def test_the_judge_goes_on_after_a_failure_of_ours(judge: Judge, task: Task) -> None:
    assert search(judge, task, expert(task)).status == Status.PASSED
