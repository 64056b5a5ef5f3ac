"""One trial: facts, curve, candidates and their endings, the champion by workload, sources, environment."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from leaderboard import charts, frames, loading, parts, words
from leaderboard.records import Attempt, State, Survey, TrialRecord
from suite.types import Language, Status

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
    _table(frames.candidate_frame(trial), _candidate_columns(), "Candidates")
    _endings(trial)
    _champion(trial)
    _source(trial)
    _circumstances(trial)
    parts.footer(survey)


def _table(rows: pd.DataFrame, columns: dict[str, ColumnConfig], alt: str) -> None:
    height = parts.table_height(rows)
    st.dataframe(rows, height=height, hide_index=True, placeholder=words.NONE, column_config=columns, alt=alt)


def _headline(trial: TrialRecord) -> None:
    columns = st.columns(4)
    champion, best = trial.champion, trial.best
    heldout = f"{words.three(champion.heldout.value)} ×" if champion else "not measured yet"
    columns[0].metric("Champion, held-out", heldout, border=True)
    columns[0].caption(f"over the baseline: {words.interval(champion.heldout)}, re-measured" if champion else "")
    columns[1].metric(
        "Champion, search", f"{words.three(champion.search.value)} ×" if champion else words.NONE, border=True
    )
    searched = f"at search time {words.three(best.score.value)} ×" if best else ""
    columns[1].caption(f"{words.interval(champion.search)}; {searched}" if champion else searched)
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
    left.table(frames.facts(trial))
    right.table(frames.spending(trial))


def _candidate_columns() -> dict[str, ColumnConfig]:
    return {
        "number": NUMBER("No.", format="%d", width=50),
        "speedup": NUMBER("Speedup (×)", format="%.2f", width=90),
        "interval": TEXT("With 95 % interval", width=150),
        "ending": TEXT("Ending", width=170),
        "why": TEXT("Stage and detail of the failure", width=360),
        "note": TEXT("Note", width=140),
        "busy": TEXT("Marks", width=100),
        "id": TEXT("Candidate", width=130),
        "parent": TEXT("Parent", width=130),
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
    rows = frames.workload_frame(trial.champion.evaluation.measurements)
    if rows.empty:
        st.caption("The champion failed before any workload was timed.")
        return
    _table(rows, _workload_columns(), "The champion on each workload")
    st.caption(f"Candidate `{trial.champion.id}`, measured {words.moment(trial.champion.time)}. Times are medians.")


def _workload_columns() -> dict[str, ColumnConfig]:
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
            st.code(
                file.content,
                language=HIGHLIGHT[attempt.candidate.spec.language],
                line_numbers=True,
                height=_height(file.content),
            )
        else:
            changes = _changes(against, attempt, file.path)
            st.code(changes, language="diff", height=_height(changes))
    if attempt.log:
        with st.expander("What compiler and candidate printed"):
            st.code(attempt.log, language=None, wrap_lines=True)


def _height(text: str) -> int | Literal["content"]:
    return 640 if text.count("\n") > 30 else "content"


def _label(trial: TrialRecord, attempt: Attempt) -> str:
    champion = ", champion" if trial.champion and attempt.id == trial.champion.id else ""
    speed = f"{words.three(attempt.score.value)} ×" if attempt.status == Status.PASSED else attempt.status.value
    return f"{attempt.number}: {speed}{champion}"


def _changes(before: Attempt, after: Attempt, path: str) -> str:
    """Unified diff of one file; a file the other side lacks counts as empty."""
    old, new = (_lines(attempt, path) for attempt in (before, after))
    names = [f"candidate {attempt.number}/{path}" for attempt in (before, after)]
    return "\n".join(difflib.unified_diff(old, new, names[0], names[1], lineterm="")) or "no change"


def _lines(attempt: Attempt, path: str) -> list[str]:
    return next((file.content for file in attempt.candidate.sources if file.path == path), "").splitlines()


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
