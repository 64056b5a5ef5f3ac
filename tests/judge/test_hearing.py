"""The record of an evaluation says where it ended and keeps what may be kept."""

from __future__ import annotations

from suite.judge.hearing import LOG_LIMIT, Hearing
from suite.judge.plan import JudgeSettings
from suite.judge.sides import Rejected
from suite.types import Job, Launch, Measurement, Split, Status, Task, Tier
from tests.judge.kernels import expert


def hearing(task: Task) -> Hearing:
    return Hearing(
        Job(task=task, candidate=expert(task), tier=Tier.SEARCH), JudgeSettings(busy_limit=0.1), queued_s=0.5
    )


def test_without_a_failure_it_is_passed(task: Task) -> None:
    verdict = hearing(task).evaluation()
    assert (verdict.status, verdict.failure, verdict.queued_s) == (Status.PASSED, None, 0.5)


def test_a_rejection_in_timing_names_the_workload_and_leaves_a_measurement(task: Task) -> None:
    record, workload = hearing(task), task.split(Split.SEARCH)[0]
    with record.stage("timing", workload):
        pass
    record.reject(Rejected(Status.TIMEOUT, "too slow"))
    verdict = record.evaluation()
    assert verdict.failure is not None
    assert (verdict.failure.stage, verdict.failure.workload) == ("timing", workload.uuid)
    assert [(one.workload, one.status) for one in verdict.measurements] == [(workload, Status.TIMEOUT)]


def test_a_rejection_in_the_check_split_names_no_workload(task: Task) -> None:
    record = hearing(task)
    with record.stage("check"):
        pass
    record.reject(Rejected(Status.OUT_OF_BOUNDS, "there"))
    verdict = record.evaluation()
    assert verdict.failure is not None
    assert (verdict.failure.stage, verdict.failure.workload) == ("check", "check")
    assert not verdict.measurements


def test_a_rejection_at_a_later_start_is_not_blamed_on_the_last_workload(task: Task) -> None:
    record = hearing(task)
    with record.stage("timing", task.split(Split.SEARCH)[0]):
        pass
    with record.stage("start"):
        pass
    record.reject(Rejected(Status.RUNTIME_ERROR, "import"))
    verdict = record.evaluation()
    assert verdict.failure is not None and verdict.failure.workload is None


def test_time_in_a_stage_adds_up_over_visits(task: Task) -> None:
    record = hearing(task)
    for _ in range(2):
        with record.stage("start"):
            pass
    assert record.evaluation().stages_s.keys() == {"start"}


def test_the_log_keeps_its_first_64_kib_and_repeats_nothing(task: Task) -> None:
    record = hearing(task)
    record.print("compiler\n")
    record.print("run\n")
    record.print("run\n")
    record.print("\n")
    assert record.evaluation().log == "compiler\nrun\n"
    record.print("é" * LOG_LIMIT)
    log = record.evaluation().log
    assert log.startswith("compiler") and LOG_LIMIT - 2 < len(log.encode()) <= LOG_LIMIT


def launch(foreign: float, seconds: float) -> Launch:
    return Launch(
        candidate_us=(1.0, 1.0), baseline_us=(1.0, 1.0), overhead_us=1.0, foreign_cpu=foreign, seconds=seconds
    )


def test_busy_is_the_foreign_share_over_all_launches(task: Task) -> None:
    for launches, busy in (((launch(0.5, 1.0), launch(0.0, 9.0)), False), ((launch(0.5, 5.0), launch(0.0, 5.0)), True)):
        record = hearing(task)
        workload = task.split(Split.SEARCH)[0]
        record.add((Measurement(workload=workload, status=Status.PASSED, launches=launches),))
        assert record.evaluation().busy is busy
