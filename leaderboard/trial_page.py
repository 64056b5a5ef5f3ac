"""One trial: facts, curve, candidates and their endings, the champion by workload, sources, environment."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from leaderboard import charts, loading, parts, words
from leaderboard.records import Attempt, State, Survey, TrialRecord
from suite.score import baseline_us, candidate_us, rates, speedup
from suite.types import Language, Measurement, Status

NUMBER = st.column_config.NumberColumn
TEXT = st.column_config.TextColumn
HIGHLIGHT = {Language.CPP: "cpp", Language.CUDA: "cpp", Language.PYTHON: "python", Language.TRITON: "python"}


def show() -> None:
    survey = loading.current()
    if parts.empty(survey):
        return
    st.title("Trial")
    ids = [trial.id for trial in survey.trials]
    wanted = st.query_params.get("trial")
    # No default: a default would be left out of the address, and the address is what people share.
    chosen = st.selectbox("Trial", ids, index=None, placeholder="Choose a trial", key="trial", bind="query-params")
    if chosen is None:
        _nothing_chosen(wanted, survey)
        return
    running = any(trial.id == chosen and trial.state == State.RUNNING for trial in survey.trials)
    st.fragment(_body, run_every=parts.REFRESH if running else None)(chosen)


def _nothing_chosen(wanted: str | None, survey: Survey) -> None:
    if wanted:
        st.error("The address names a trial that this runs folder does not hold.")
        st.code(
            f"came: {wanted}\nexpected: one of {len(survey.trials)} trials in {loading.runs_folder()}", language=None
        )
    st.info("Choose a trial above, or open one from the table on the Standings page.")
    parts.notices(survey.notices)


def _body(chosen: str) -> None:
    survey = loading.current()
    trial = next((trial for trial in survey.trials if trial.id == chosen), None)
    if trial is None:
        st.error(f"Trial `{chosen}` is gone from the runs folder, or its ledger is broken.")
        parts.notices(survey.notices)
        return
    _headline(trial)
    _facts(trial)
    st.subheader("Search")
    axis = st.segmented_control(
        "Against", charts.AXES, default="evaluations", required=True, key="axis", bind="query-params"
    )
    st.plotly_chart(
        charts.curve(trial, axis or "evaluations"), key="curve", alt="Best speedup so far and all candidates"
    )
    st.dataframe(candidate_frame(trial), hide_index=True, column_config=_candidate_columns(), alt="Candidates")
    _endings(trial)
    _champion(trial)
    _source(trial)
    _circumstances(trial)
    parts.footer(survey)


def _headline(trial: TrialRecord) -> None:
    columns = st.columns(4)
    champion, best = trial.champion, trial.best
    heldout = f"{words.interval(champion.heldout)} ×" if champion else "not measured yet"
    columns[0].metric("Champion, held-out", heldout, border=True)
    columns[0].caption("speedup over the baseline, re-measured, 95 % interval")
    columns[1].metric(
        "Champion, search", f"{words.interval(champion.search)} ×" if champion else words.NONE, border=True
    )
    columns[1].caption(f"at search time {words.three(best.score.value) if best else words.NONE} ×")
    limit = trial.spec.budget.evaluations
    done = f"{trial.spent.evaluations} of {limit}" if limit else str(trial.spent.evaluations)
    columns[2].metric("Evaluations", done, border=True)
    columns[2].caption(f"{trial.spent.free} repeats, {trial.spent.refunds} refunded")
    columns[3].metric("State", trial.state.value, border=True)
    columns[3].caption(f"last line of the ledger {words.moment(trial.last)}")
    if champion and champion.evaluation.status != Status.PASSED:
        failure = champion.evaluation.failure
        st.error(f"The champion failed when it was measured again ({champion.evaluation.status}): the trial scores 0.")
        st.code(failure.detail if failure else "", language=None, wrap_lines=True)
    if trial.busy:
        st.warning("Other processes used this machine while the number above was timed.")


def _facts(trial: TrialRecord) -> None:
    left, right = st.columns(2)
    left.table(facts(trial))
    right.table(spending(trial))


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
    """One line per evaluation, failures included."""
    return pd.DataFrame([_candidate_line(trial, attempt) for attempt in trial.attempts])


def _candidate_line(trial: TrialRecord, attempt: Attempt) -> dict[str, object]:
    champion = trial.champion is not None and attempt.id == trial.champion.id
    failure = attempt.failure
    return {
        "number": attempt.number,
        "speedup": attempt.score.value if attempt.status == Status.PASSED else None,
        "interval": words.interval(attempt.score) if attempt.status == Status.PASSED else words.NONE,
        "ending": attempt.status.value,
        "why": f"{failure.stage}: {failure.detail}" if failure else "",
        "note": ", ".join(text for text in ("champion" if champion else "", attempt.note) if text),
        "busy": "machine busy" if attempt.busy else "",
        "id": attempt.id,
        "parent": attempt.parent or words.NONE,
    }


def _candidate_columns() -> dict[str, object]:
    return {
        "number": NUMBER("No.", format="%d", width=50),
        "speedup": NUMBER("Speedup (×)", format="%.2f", width=90),
        "interval": TEXT("With 95 % interval", width=150),
        "ending": TEXT("Ending", width=170),
        "why": TEXT("Stage and detail of the failure", width=380),
        "note": TEXT("Note", width=140),
        "busy": TEXT("Marks", width=100),
        "id": TEXT("Candidate", width=140),
        "parent": TEXT("Parent", width=140),
    }


def _endings(trial: TrialRecord) -> None:
    seen = dict.fromkeys(attempt.status for attempt in trial.attempts)
    st.caption(" · ".join(f"{status.value}: {words.ENDINGS[status]}" for status in seen))


def _champion(trial: TrialRecord) -> None:
    st.subheader("Champion, workload by workload")
    if trial.champion is None:
        found = "Nothing passed." if trial.state == State.FINISHED else "It is measured when the method has ended."
        st.caption(f"There is no champion measurement. {found}")
        return
    rows = workload_frame(trial.champion.evaluation.measurements)
    if rows.empty:
        st.caption("The champion failed before any workload was timed.")
        return
    st.dataframe(rows, hide_index=True, column_config=_workload_columns(), alt="The champion on each workload")
    st.caption(f"Candidate `{trial.champion.id}`, measured {words.moment(trial.champion.time)}. Times are medians.")


def workload_frame(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """One line per workload; times in milliseconds."""
    return pd.DataFrame([_workload_line(measurement) for measurement in measurements])


def _workload_line(measurement: Measurement) -> dict[str, object]:
    mine, theirs = candidate_us(measurement), baseline_us(measurement)
    gflops, gbytes = rates(measurement)
    found = measurement.correctness
    return {
        "split": measurement.workload.split.value,
        "axes": ", ".join(f"{name} {value}" for name, value in measurement.workload.axes.items()),
        "ending": measurement.status.value,
        "speedup": speedup(measurement).value,
        "interval": words.interval(speedup(measurement)),
        "candidate_ms": mine / 1e3 if mine is not None else None,
        "baseline_ms": theirs / 1e3 if theirs is not None else None,
        "gflops": gflops,
        "gbytes_per_s": gbytes,
        "max_absolute_error": found.max_absolute_error if found else None,
        "max_relative_error": found.max_relative_error if found else None,
        "detail": measurement.detail,
    }


def _workload_columns() -> dict[str, object]:
    return {
        "split": TEXT("Split", width=80),
        "axes": TEXT("Axes"),
        "ending": TEXT("Ending", width=90),
        "speedup": NUMBER("Speedup (×)", format="%.2f", width=90),
        "interval": TEXT("With 95 % interval", width=150),
        "candidate_ms": NUMBER("Candidate (ms)", format="%.3f", width=110),
        "baseline_ms": NUMBER("Baseline (ms)", format="%.3f", width=110),
        "gflops": NUMBER("GFLOPS", format="%.1f", width=80),
        "gbytes_per_s": NUMBER("GB/s", format="%.1f", width=70),
        "max_absolute_error": NUMBER("Max abs. error", format="%.1e", width=110),
        "max_relative_error": NUMBER("Max rel. error", format="%.1e", width=110),
        "detail": TEXT("Detail"),
    }


def _source(trial: TrialRecord) -> None:
    st.subheader("Source")
    if not trial.attempts:
        st.caption("Nothing has been judged yet.")
        return
    labels = {_label(trial, attempt): attempt for attempt in trial.attempts}
    shown = trial.champion.id if trial.champion else trial.best.id if trial.best else trial.attempts[0].id
    index = next((place for place, attempt in enumerate(labels.values()) if attempt.id == shown), 0)
    left, right = st.columns([2, 1])
    attempt = labels[left.selectbox("Candidate", list(labels), index=index, key="candidate")]
    others = {"source": None, "changes from the starter": trial.starter}
    view = right.segmented_control("View", list(others), default="source", required=True, key="view")
    against = others[view or "source"]
    for file in attempt.candidate.sources:
        st.caption(file.path)
        if against is None:
            st.code(file.content, language=HIGHLIGHT[attempt.candidate.spec.language], line_numbers=True, height=480)
        else:
            st.code(_changes(against, attempt, file.path), language="diff", height=480)
    if attempt.log:
        with st.expander("What compiler and candidate printed"):
            st.code(attempt.log, language=None, wrap_lines=True)


def _label(trial: TrialRecord, attempt: Attempt) -> str:
    champion = ", champion" if trial.champion and attempt.id == trial.champion.id else ""
    speed = f"{words.three(attempt.score.value)} ×" if attempt.status == Status.PASSED else attempt.status.value
    return f"{attempt.number}: {speed}{champion}"


def _changes(before: Attempt, after: Attempt, path: str) -> str:
    """Unified diff of one file; a file the other side lacks counts as empty."""
    texts = [
        next((file.content for file in attempt.candidate.sources if file.path == path), "").splitlines()
        for attempt in (before, after)
    ]
    names = [f"candidate {attempt.number}/{path}" for attempt in (before, after)]
    return "\n".join(difflib.unified_diff(*texts, *names, lineterm="")) or "no change"


def _circumstances(trial: TrialRecord) -> None:
    left, right = st.columns(2)
    with left.expander("Environment"):
        _pairs({**trial.environment, **trial.spec.toolchain})
    with right.expander("Sandbox the champion was judged in"):
        _pairs(trial.champion.evaluation.sandbox if trial.champion else {})
    st.subheader("Reproduce")
    suffix = "cpp" if trial.spec.language is Language.CPP else "py"
    st.caption("Judge the champion again: download it, then")
    st.code(f"derby check {trial.spec.task} champion.{suffix}", language="bash")
    identity = {
        "trial": trial.id,
        "task digest": trial.spec.task_digest,
        "brief digest": trial.spec.brief_digest,
        "held-out commitment": trial.heldout_commitment,
        "ledger": str(trial.ledger),
        "hash of its last line": trial.head,
    }
    st.code("\n".join(f"{name}: {value}" for name, value in identity.items()), language=None)
    best = next((item for item in trial.attempts if trial.champion and item.id == trial.champion.id), None)
    if best:
        text = best.candidate.text()
        st.download_button("Champion's source", text, f"champion.{suffix}", "text/plain", on_click="ignore")


def _pairs(values: Mapping[str, str]) -> None:
    if values:
        st.table(dict(values))
    else:
        st.caption("Not recorded.")
