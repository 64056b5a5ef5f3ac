"""From a verdict to what the method may know of it: search workloads only, nothing of the undisclosed ones."""

from __future__ import annotations

from collections.abc import Iterator

from suite.events import Evaluated
from suite.score import baseline_us, candidate_us, score, speedup
from suite.types import Evaluation, Failure, Split, Status, Task
from suite.workbench import Feedback, WorkloadFeedback

UNDISCLOSED = "check"


def feedback(event: Evaluated, task: Task) -> Feedback:
    """The method's view of an evaluation of `task`."""
    evaluation = event.evaluation
    estimate = score(evaluation, Split.SEARCH)
    failure = None if evaluation.failure is None else _masked(evaluation.failure, task)
    return Feedback(
        number=event.number,
        candidate=event.candidate.id,
        status=evaluation.status,
        score=estimate.value,
        low=estimate.value if estimate.low is None else estimate.low,
        high=estimate.value if estimate.high is None else estimate.high,
        failure=failure,
        workloads=tuple(_workloads(evaluation)),
        log=evaluation.log if failure is not None and failure.stage == "build" else "",
    )


def _masked(failure: Failure, task: Task) -> Failure:
    """The failure with every undisclosed workload's name replaced."""
    shown = {workload.uuid for workload in task.split(Split.SEARCH)}
    detail = failure.detail
    for workload in task.workloads:
        if workload.uuid not in shown:
            detail = detail.replace(workload.uuid, UNDISCLOSED)
    named = failure.workload if failure.workload is None or failure.workload in shown else UNDISCLOSED
    return failure.model_copy(update={"detail": detail, "workload": named})


def _workloads(evaluation: Evaluation) -> Iterator[WorkloadFeedback]:
    for measurement in evaluation.measurements:
        candidate, baseline = candidate_us(measurement), baseline_us(measurement)
        timed = measurement.status == Status.PASSED and measurement.workload.split == Split.SEARCH
        if not timed or candidate is None or baseline is None:
            continue
        estimate = speedup(measurement)
        yield WorkloadFeedback(
            uuid=measurement.workload.uuid,
            axes=measurement.workload.axes,
            speedup=estimate.value,
            low=estimate.value if estimate.low is None else estimate.low,
            high=estimate.value if estimate.high is None else estimate.high,
            candidate_us=candidate,
            baseline_us=baseline,
        )
