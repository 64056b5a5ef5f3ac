"""Tables, trials and evaluations -> the data frames the pages show: numbers where a column is sorted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import pandas as pd

from leaderboard import words
from leaderboard.records import Attempt, Call, CallState, TrialRecord
from leaderboard.standings import Row, Table
from suite.score import baseline_us, candidate_us, rates, speedup
from suite.types import Measurement, Status


def table_frame(table: Table) -> pd.DataFrame:
    """The table as shown: numbers where a column is sorted by them, words elsewhere."""
    return pd.DataFrame([_line(row, table.label(row)) for row in table.rows])


def _line(row: Row, label: str) -> dict[str, object]:
    return {
        "rank": str(row.rank) if row.rank else words.NONE,
        "method": label,
        "heldout": row.heldout.value if row.heldout else None,
        "heldout_interval": _brackets(row),
        "marks": ", ".join(row.marks),
        "search": row.search.value if row.search else None,
        "search_time": row.search_time,
        "seeds": row.seeds or None,
        "evaluations": row.evaluations,
        "tokens": words.NONE if row.tokens is None else words.tokens(row.tokens),
        "usd": words.NONE if row.kind != "method" else words.usd(row.usd),
        "wall": words.NONE if row.wall_s is None else words.seconds(row.wall_s),
        "gflops": row.gflops,
        "gbytes_per_s": row.gbytes_per_s,
        "checked": "" if row.kind == "baseline" else "verified" if row.verified else "claimed",
        "measured": words.day(row.measured) if row.measured else words.NONE,
    }


def _brackets(row: Row) -> str:
    """Nothing where a failed champion makes the number 0: 0 – 0 would read as a sure thing."""
    if row.heldout is None or row.heldout.value == 0 or row.heldout.low is None or row.heldout.high is None:
        return words.NONE
    return f"{words.three(row.heldout.low)} – {words.three(row.heldout.high)}"


def trial_frame(trials: Sequence[TrialRecord]) -> pd.DataFrame:
    """The trials of a table, with the address of each one's page."""
    return pd.DataFrame([_trial_line(trial) for trial in trials])


def _trial_line(trial: TrialRecord) -> dict[str, object]:
    limit = trial.spec.budget.evaluations
    return {
        "page": f"trial?{urlencode({'trial': trial.id})}",
        "method": trial.spec.method.name,
        "options": words.options(trial.spec.method),
        "seed": trial.spec.seed,
        "state": trial.state.value,
        "reason": trial.reason,
        "evaluations": f"{trial.spent.evaluations} of {limit}" if limit else str(trial.spent.evaluations),
        "search_time": trial.best.score.value if trial.best else None,
        "heldout": words.interval(trial.champion.heldout) if trial.champion else words.NONE,
        "busy": "machine busy" if trial.busy else "",
        "last": words.moment(trial.last),
    }


def facts(trial: TrialRecord) -> dict[str, str]:
    """What the trial is."""
    spec = trial.spec
    return {
        "Method": f"{spec.method.name} {words.options(spec.method)}".strip(),
        "Task": spec.task,
        "Task digest": spec.task_digest[:16],
        "Lane, device": f"{spec.lane}, {spec.device}",
        "Language, starter": f"{spec.language}, {spec.starter}",
        "Model": words.model(spec.model),
        "Seed": str(spec.seed),
        "Edition, race": f"{spec.edition}, {spec.race}",
        "Timing protocol": spec.timing_protocol,
    }


def spending(trial: TrialRecord) -> dict[str, str]:
    """What the trial may use and has used."""
    spent, usage = trial.spent, trial.spent.usage
    return {
        "Budget": words.budget(trial.spec.budget),
        "Concurrency": f"{trial.spec.concurrency} at a time",
        "Ended because": trial.reason,
        "Model calls": str(spent.calls),
        "Tokens in, of these cached": f"{words.tokens(usage.input)}, {words.tokens(usage.cached)}",
        "Tokens out, of these reasoning": f"{words.tokens(usage.output)}, {words.tokens(usage.reasoning)}",
        "US dollars": words.usd(spent.usd),
        "Time, not charged waiting": f"{words.seconds(spent.wall_s)}, {words.seconds(spent.waited_s)}",
        "Started": words.moment(trial.started),
    }


def candidate_frame(trial: TrialRecord) -> pd.DataFrame:
    """One line per evaluation, failures included; columns that only some methods fill are left out when empty."""
    rows = pd.DataFrame([_candidate_line(trial, attempt) for attempt in trial.attempts])
    return rows.drop(columns=[name for name in ("predicted", "call") if name in rows and rows[name].isna().all()])


def _candidate_line(trial: TrialRecord, attempt: Attempt) -> dict[str, object]:
    champion = trial.champion is not None and attempt.id == trial.champion.id
    failure = attempt.failure
    predicted = attempt.predicted
    return {
        "number": attempt.number,
        "speedup": attempt.score.value if attempt.status == Status.PASSED else None,
        "interval": words.interval(attempt.score) if attempt.status == Status.PASSED else words.NONE,
        "ending": attempt.status.value,
        "why": f"{failure.stage}: {failure.detail}" if failure else "",
        "note": ", ".join(text for text in ("champion" if champion else "", attempt.note) if text),
        "busy": "machine busy" if attempt.busy else "",
        "predicted": predicted.speedup if predicted else None,
        "call": attempt.origin,
        "id": attempt.id,
        "parent": attempt.parent or words.NONE,
    }


def call_frame(trial: TrialRecord) -> pd.DataFrame:
    """One line per model call, in order, whatever became of it."""
    led = put_down(trial)
    return pd.DataFrame([_call_line(call, led.get(call.number, ())) for call in trial.calls])


def put_down(trial: TrialRecord) -> dict[int, list[int]]:
    """The numbers of the candidates that each call led to."""
    led: dict[int, list[int]] = {}
    for attempt in trial.attempts:
        if attempt.origin is not None:
            led.setdefault(attempt.origin, []).append(attempt.number)
    return led


def _call_line(call: Call, candidates: Sequence[int]) -> dict[str, object]:
    answered = call.state is CallState.ANSWERED
    return {
        "number": call.number,
        "state": call.state.value,
        "yielded": yield_of(call) if answered else words.NONE,
        "candidates": ", ".join(map(str, candidates)),
        "input": call.usage.input if answered else None,
        "cached": call.usage.cached if answered else None,
        "output": call.usage.output if answered else None,
        "reasoning": call.usage.reasoning if answered else None,
        "usd": words.cents(call.usd) if answered else words.NONE,
        "seconds": call.seconds,
        "waited": call.waited_s if answered else None,
        "finish": call.finish_reason,
        "note": words.plain(call.reason or call.note),
    }


def yield_of(call: Call) -> str:
    """Whether a reply has code, as far as its text tells."""
    return "code" if call.blocks else "no code block"


def call_facts(call: Call) -> str:
    """What a call took, in a line."""
    usage = call.usage
    bound = " (an upper bound: the server reported no usage)" if call.is_bound else ""
    parts = (
        f"Call {call.number}, {words.moment(call.time)}",
        f"{usage.input:,} tokens in ({usage.cached:,} cached)",
        f"{usage.output:,} out ({usage.reasoning:,} reasoning){bound}",
        f"price {words.UNKNOWN}" if call.usd is None else words.cents(call.usd),
        f"{call.seconds:.1f} s" if call.seconds is not None else "",
        f"waited {call.waited_s:.1f} s" if call.waited_s >= 0.05 else "",
        f"ended by {call.finish_reason}" if call.finish_reason else "",
        words.plain(call.note),
    )
    return " · ".join(part for part in parts if part)


def workload_frame(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """One line per workload; times in milliseconds."""
    return pd.DataFrame([_workload_line(measurement) for measurement in measurements])


def _workload_line(measurement: Measurement) -> dict[str, object]:
    mine, theirs = candidate_us(measurement), baseline_us(measurement)
    # A check workload is never timed, a failed one has no speed: neither is "0.00 times as fast".
    fast = speedup(measurement) if measurement.launches else None
    gflops, gbytes = rates(measurement)
    found = measurement.correctness
    return {
        "split": measurement.workload.split.value,
        "axes": ", ".join(f"{name} {value}" for name, value in measurement.workload.axes.items()),
        "ending": measurement.status.value,
        "speedup": fast.value if fast else None,
        "interval": words.interval(fast) if fast else words.NONE,
        "candidate_ms": mine / 1e3 if mine is not None else None,
        "baseline_ms": theirs / 1e3 if theirs is not None else None,
        "gflops": gflops,
        "gbytes_per_s": gbytes,
        "max_absolute_error": found.max_absolute_error if found else None,
        "max_relative_error": found.max_relative_error if found else None,
        "detail": measurement.detail,
    }
