"""A candidate's source on the trial page: as it is, or as changes against starter, parent, baseline or any other."""

from __future__ import annotations

import streamlit as st

from leaderboard import baseline, diff, diff_html, loading, parts, texts, words
from leaderboard.records import Attempt, TrialRecord
from suite.types import Candidate, Language, Status

HIGHLIGHT = {Language.CPP: "cpp", Language.CUDA: "cpp", Language.PYTHON: "python", Language.TRITON: "python"}
VIEWS = ("source", "against starter", "against parent", "against baseline", "against another")


def show(trial: TrialRecord) -> None:
    st.subheader("Source")
    if not trial.attempts:
        st.caption("Nothing has been judged yet.")
        return
    attempt, view, layout, other = _chosen(trial)
    event = texts.judged(trial, attempt)
    if view == "source":
        for file in event.candidate.sources:
            st.caption(words.literal(file.path))
            parts.text(file.content, f"{attempt.id}-{file.path}", HIGHLIGHT[trial.spec.language])
    else:
        _changes(trial, attempt, view, layout, other)
    if event.evaluation.log:
        with st.expander("What compiler and candidate printed"):
            parts.text(event.evaluation.log, f"{attempt.id}.log")


def _chosen(trial: TrialRecord) -> tuple[Attempt, str, diff_html.Layout, Attempt | None]:
    labels = {label(trial, attempt): attempt for attempt in trial.attempts}
    index = next((place for place, attempt in enumerate(labels.values()) if attempt.id == _first(trial)), 0)
    left, middle, right = st.columns([3, 5, 2])
    chosen = left.selectbox("Candidate", list(labels), index=index, key="candidate", bind="query-params")
    view = middle.segmented_control("View", VIEWS, default=VIEWS[0], required=True, key="view", bind="query-params")
    layout, other = diff_html.LAYOUTS[0], None
    if view != VIEWS[0]:
        layout = right.segmented_control(
            "Layout", diff_html.LAYOUTS, default=layout, required=True, key="layout", bind="query-params"
        )
    if view == "against another":
        other = labels[left.selectbox("The other candidate", list(labels), key="other", bind="query-params")]
    return labels[chosen], view or VIEWS[0], layout or diff_html.LAYOUTS[0], other


def _first(trial: TrialRecord) -> str:
    """The candidate one sees first: the champion, or the best so far, or the starter."""
    if trial.champion:
        return trial.champion.id
    return trial.best.id if trial.best else trial.attempts[0].id


def label(trial: TrialRecord, attempt: Attempt) -> str:
    """`3: 1.30 ×, champion`."""
    champion = ", champion" if trial.champion and attempt.id == trial.champion.id else ""
    speed = f"{words.three(attempt.score.value)} ×" if attempt.status == Status.PASSED else attempt.status.value
    return f"{attempt.number}: {speed}{champion}"


def _changes(
    trial: TrialRecord, attempt: Attempt, view: str, layout: diff_html.Layout, another: Attempt | None
) -> None:
    other = _other(trial, attempt, view, another)
    if isinstance(other, str):
        st.info(f"There is nothing to compare with: {words.literal(other)}.")
        return
    name, before = other
    after = texts.judged(trial, attempt).candidate
    found = _compared(before, after)
    left_out = [words.literal(file.path) for file in found if not file.rows]
    for file in found:
        if file.rows:
            count = f"{file.removed} lines removed or changed, {file.added} added or changed"
            st.caption(f"{words.literal(file.path)}: from {name} (−) to candidate {attempt.number} (+); {count}")
            st.html(diff_html.render(file, layout, (name, f"candidate {attempt.number}")))
    if left_out:
        st.caption(f"The same on both sides: {', '.join(left_out)}")


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs={Candidate: lambda candidate: candidate.id})
def _compared(before: Candidate, after: Candidate) -> tuple[diff.FileDiff, ...]:
    return diff.compare(before, after)


def _other(trial: TrialRecord, attempt: Attempt, view: str, another: Attempt | None) -> tuple[str, Candidate] | str:
    """The side to compare with and what it is called, or why there is none."""
    if view == "against baseline":
        found = baseline.find(loading.tasks_folder(), trial.spec)
        return found if isinstance(found, str) else ("the baseline", found)
    if view == "against starter":
        another = trial.starter
    elif view == "against parent":
        if attempt.parent is None:
            return "the method named no parent" if attempt.number else "the starter has no parent"
        another = next((one for one in trial.attempts if one.id == attempt.parent), None)
    if another is None:
        return "it has not been judged in this trial"
    name = "the starter" if another.number == 0 else f"candidate {another.number}"
    return name, texts.judged(trial, another).candidate
