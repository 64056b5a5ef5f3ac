"""One MLflow trace per judged candidate: the model's calls and the judge's stages as spans, laid end to end."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow import MlflowClient
from mlflow.entities import SpanType

from suite.events import ChampionMeasured, Evaluated, ModelCalled
from suite.score import score
from suite.types import Evaluation, Split, Status

NANO = 1_000_000_000


class Traces:
    """Writes traces into one experiment; of every `every` evaluations one, and every champion."""

    def __init__(self, client: MlflowClient, experiment: str, every: int) -> None:
        self._client, self._experiment, self._every = client, experiment, every

    def add(
        self, run: str, trial: str, event: Evaluated | ChampionMeasured, calls: Sequence[ModelCalled], now: float
    ) -> None:
        """A trace that ends at `now` (seconds since 1970). Events tell durations, not moments: gaps are not shown."""
        number = event.number if isinstance(event, Evaluated) else None
        if number is not None and number % self._every:
            return
        evaluation = event.evaluation
        spent = sum(call.seconds for call in calls) + evaluation.queued_s + sum(evaluation.stages_s.values())
        clock = int((now - spent) * NANO)
        root = self._client.start_trace(
            "champion" if number is None else f"evaluation {number}",
            inputs={"candidate": evaluation.candidate},
            tags={"derby.trial": trial, "derby.iteration": "champion" if number is None else str(number)},
            experiment_id=self._experiment,
            start_time_ns=clock,
            run_id=run,
        )
        for call in calls:
            clock = self._call(root.trace_id, root.span_id, call, clock)
        clock = self._stages(root.trace_id, root.span_id, evaluation, clock)
        self._client.end_trace(root.trace_id, _outputs(evaluation), status=_ok(evaluation), end_time_ns=clock)

    def _call(self, trace: str, root: str, call: ModelCalled, clock: int) -> int:
        messages = [message.model_dump() for message in call.messages]
        usage = {
            "input_tokens": call.usage.input,
            "output_tokens": call.usage.output,
            "total_tokens": call.usage.total,
        }
        span = self._client.start_span(
            "model call",
            trace,
            root,
            span_type=SpanType.CHAT_MODEL,
            inputs={"messages": messages},
            attributes={"mlflow.chat.tokenUsage": usage},
            start_time_ns=clock,
        )
        clock += int(call.seconds * NANO)
        self._client.end_span(trace, span.span_id, outputs={"reply": call.reply}, end_time_ns=clock)
        return clock

    def _stages(self, trace: str, root: str, evaluation: Evaluation, clock: int) -> int:
        failed = evaluation.failure.stage if evaluation.failure else None
        for stage, seconds in {"queued": evaluation.queued_s, **evaluation.stages_s}.items():
            if not seconds:
                continue
            span = self._client.start_span(stage, trace, root, span_type=SpanType.TOOL, start_time_ns=clock)
            clock += int(seconds * NANO)
            status = "ERROR" if stage == failed else "OK"
            self._client.end_span(trace, span.span_id, status=status, end_time_ns=clock)
        return clock


def _ok(evaluation: Evaluation) -> str:
    return "OK" if evaluation.status == Status.PASSED else "ERROR"


def _outputs(evaluation: Evaluation) -> dict[str, object]:
    failure = evaluation.failure.detail if evaluation.failure else ""
    return {
        "status": evaluation.status.value,
        "search speedup": score(evaluation, Split.SEARCH).value,
        "heldout speedup": score(evaluation, Split.HELDOUT).value,
        "failure": failure,
    }
