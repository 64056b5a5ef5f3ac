"""One trial: facts, curve, candidates, forecasts, the champion by workload, sources, model calls, environment."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from leaderboard import calibration, calls_part, curves, frames, loading, parts, source_part, steps, texts, words
from leaderboard.reading import Survey
from leaderboard.records import State, TrialRecord
from suite.types import Language, Status

NUMBER = st.column_config.NumberColumn
TEXT = st.column_config.TextColumn


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
        st.error(f"Trial {words.literal(chosen)} is gone from the runs folder, or its ledger is broken.")
        parts.notices(survey.notices)
        return
    _headline(trial)
    _facts(trial)
    _search(trial)
    _table(frames.candidate_frame(trial), _candidate_columns(), "Candidates")
    _endings(trial)
    _forecasts(trial)
    _champion(trial)
    with parts.told():
        source_part.show(trial)
    calls_part.show(trial)
    _circumstances(trial)
    parts.footer(survey)


def _search(trial: TrialRecord) -> None:
    st.subheader("Search")
    axis = parts.axis()
    if why := steps.nothing([(trial.spec.method.name, [trial])], axis):
        st.info(why)
    else:
        st.plotly_chart(_curve(trial, axis), key="curve", alt="Best speedup so far and all candidates")


# Plotly takes most of a second over thousands of candidates; a ledger's last hash says whether there are new ones.
@st.cache_resource(max_entries=64, show_spinner=False, hash_funcs={TrialRecord: lambda trial: trial.head})
def _curve(trial: TrialRecord, axis: steps.Axis) -> go.Figure:
    return curves.one_trial(trial, axis)


def _forecasts(trial: TrialRecord) -> None:
    """Only of a method that has said what it expected."""
    scales = calibration.scales(trial)
    if not scales:
        return
    st.subheader("Predicted and measured")
    left, right = st.columns(2)
    scale = scales[0]
    if len(scales) > 1:
        with right:
            scale = st.segmented_control(
                "Scale of the prediction", scales, default=scale, required=True, key="scale", bind="query-params"
            )
    found = calibration.pairs(trial, scale)
    figure = calibration.figure(trial.spec.method.name, found, scale)
    left.plotly_chart(figure, key="calibration", alt="What the method predicted beside what was measured")
    right.markdown("\n".join(f"- {sentence}" for sentence in calibration.summary(found, scale)))
    device = words.literal(trial.spec.device)
    right.caption(f"Speedups over the baseline on {device}, measured while searching; one trial, one seed.")


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
    with left:
        parts.pairs(frames.facts(trial))
    with right:
        parts.pairs(frames.spending(trial))


def _candidate_columns() -> dict[str, ColumnConfig]:
    return {
        "number": NUMBER("No.", format="%d", width=50),
        "speedup": NUMBER("Speedup (×)", format="%.2f", width=90),
        "interval": TEXT("With 95 % interval", width=145),
        "ending": TEXT("Ending", width=165),
        "why": TEXT("Stage and detail of the failure", width=270),
        "note": TEXT("Note", width=110),
        "busy": TEXT("Marks", width=100),
        "predicted": NUMBER(
            "Predicted (×)", format="%.2f", width=95, help="What the method expected before the verdict."
        ),
        "call": NUMBER("Call", format="%d", width=50, help="The model call it is put down to, see below."),
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
    if best is None:
        return
    with parts.told():
        champion = texts.judged(trial, best).candidate
        entry = champion.spec.entry_point.split("::")[0]
        for file in champion.sources:
            name = f"champion.{suffix}" if file.path == entry else file.path.replace("/", "_")
            label = f"Champion's source, {words.literal(file.path)}"
            st.download_button(label, file.content, name, "text/plain", on_click="ignore", key=f"champion-{file.path}")


def _pairs(values: Mapping[str, str]) -> None:
    if values:
        parts.pairs(values)
    else:
        st.caption("Not recorded.")
