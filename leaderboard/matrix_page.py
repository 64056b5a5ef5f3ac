"""The page of tasks x methods: every cell a method's ranked number on a task, with its trials behind it."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from leaderboard import loading, matrix_html, parts, words
from leaderboard.matrix import Matrix, matrices, sorted_by
from leaderboard.records import State
from leaderboard.standings import Table, as_dicts, standings

LEGEND = """
- A number is the **held-out speedup over the task's baseline** (×): the geometric mean over seeds of the champions,
  re-measured on workloads no method saw; below it the 95 % interval, the rank within the task, marks, and the seeds,
  each a link to its trial. The task's name leads to its standings.
- **Colour**: blue is faster than the baseline, orange is slower, from 2 × (or half) on at full strength; hatched: a
  champion failed, which makes the cell 0. The numbers say the same.
- **All tasks**: the geometric mean over the tasks' numbers, only for a method with a number on every task of the
  matrix. Its interval covers the luck of seeds, not the choice of tasks.
- Lane, device, language, starter, model, budget, concurrency and timing protocol are the same in a whole matrix; a task
  whose digest has changed is a line of its own.
"""


def show() -> None:
    survey = loading.current()
    if parts.empty(survey):
        return
    st.title("Tasks × methods")
    found = matrices(standings(survey.trials))
    left, middle, right = st.columns([1, 5, 2])
    editions = list(dict.fromkeys(matrix.conditions.edition for matrix in found))
    edition = left.selectbox("Edition", editions, key="edition", bind="query-params")
    found = tuple(matrix for matrix in found if matrix.conditions.edition == edition)
    titles = {f"{matrix.conditions.title} · {matrix.id}": matrix for matrix in found}
    chosen = middle.selectbox("Conditions, shared by all cells", list(titles), key="conditions", bind="query-params")
    labels = ["task", *(column.label for column in titles[chosen].columns)]
    by = right.selectbox("Sort tasks by", labels, key="by", bind="query-params")
    running = any(trial.state == State.RUNNING for trial in survey.trials)
    st.fragment(_body, run_every=parts.REFRESH if running else None)(titles[chosen].id, None if by == "task" else by)


def _body(wanted: str, by: str | None) -> None:
    # Read again: this part reruns alone while trials are running.
    survey = loading.current()
    matrix = next((one for one in matrices(standings(survey.trials)) if one.id == wanted), None)
    if matrix is None:
        st.info("These trials are gone from the runs folder. Reload the page.")
        return
    pages = {line.table.partition.id: _page(line.table) for line in matrix.lines}
    seeds = {trial.id: trial.spec.seed for trial in survey.trials}
    parts.conditions(matrix.conditions.title)
    st.html(matrix_html.render(matrix, sorted_by(matrix, by), pages, seeds))
    device, edition = words.literal(matrix.conditions.device), words.literal(matrix.conditions.edition)
    st.caption(f"Held-out speedup over each task's baseline on {device}, edition {edition}.")
    with st.expander("How to read it"):
        st.markdown(LEGEND)
        st.markdown(parts.MARKS)
    _downloads(matrix)
    parts.notices(survey.notices)
    parts.footer(survey)


def _page(table: Table) -> str:
    partition = table.partition
    chosen = {"edition": partition.edition, "task": partition.task, "conditions": parts.title(table)}
    return f"./?{urlencode(chosen)}"  # the standings are the front page


def _downloads(matrix: Matrix) -> None:
    rows = as_dicts([line.table for line in matrix.lines])
    row = st.container(horizontal=True)
    name = f"matrix-{matrix.conditions.edition}-{matrix.id}"
    csv = pd.DataFrame(rows).to_csv(index=False)
    row.download_button("Cells as CSV", csv, f"{name}.csv", "text/csv", on_click="ignore")
    text = json.dumps(rows, indent=1)
    row.download_button("Cells as JSON", text, f"{name}.json", "application/json", on_click="ignore")
