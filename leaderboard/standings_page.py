"""The page that compares methods: one table per set of conditions, its intervals and convergence."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from leaderboard import charts, curves, frames, loading, parts, steps, words
from leaderboard.reading import Survey
from leaderboard.records import State, TrialRecord
from leaderboard.standings import Row, Table, as_dicts, standings

NUMBER = st.column_config.NumberColumn
TEXT = st.column_config.TextColumn

LINES = ("median and range", "every seed")
LEGEND = "Line: median over seeds; band: worst to best seed; dotted: beyond the method's own end."


def show() -> None:
    survey = loading.current()
    if parts.empty(survey):
        return
    st.title("Standings")
    tables = standings(survey.trials)
    left, middle, right = st.columns([1, 2, 4])
    edition = left.selectbox("Edition", _distinct(tables, "edition"), key="edition", bind="query-params")
    tables = tuple(table for table in tables if table.partition.edition == edition)
    task = middle.selectbox("Task", _distinct(tables, "task"), key="task", bind="query-params")
    tables = tuple(table for table in tables if table.partition.task == task)
    titles = {table.partition.id: parts.title(table) for table in tables}
    chosen = right.selectbox(
        "Conditions (only trials that share all of them are compared)",
        list(titles.values()),
        key="conditions",
        bind="query-params",
    )
    wanted = next(table.partition.id for table in tables if titles[table.partition.id] == chosen)
    running = any(trial.state == State.RUNNING for trial in survey.trials)
    st.fragment(_body, run_every=parts.REFRESH if running else None)(wanted)


def _distinct(tables: Sequence[Table], name: str) -> list[str]:
    return list(dict.fromkeys(getattr(table.partition, name) for table in tables))


def _body(wanted: str) -> None:
    # Read again: this part reruns alone while trials are running.
    survey = loading.current()
    table = next((table for table in standings(survey.trials) if table.partition.id == wanted), None)
    if table is None:
        st.info("These trials are gone from the runs folder. Reload the page.")
        return
    names = {name for row in table.rows for name in row.trials}
    trials = [trial for trial in survey.trials if trial.id in names]
    parts.conditions(table.partition.title)
    _headline(table, trials, survey)
    st.dataframe(
        frames.table_frame(table),
        hide_index=True,
        placeholder=words.NONE,
        column_config=_columns(table),
        alt=f"Standings of {table.partition.task}, one row per method",
    )
    _downloads(table)
    with st.expander("What the numbers and marks mean"):
        st.markdown(parts.MARKS)
    _charts(table, trials)
    st.subheader("Trials")
    listed = frames.trial_frame(trials)
    st.dataframe(
        listed,
        height=parts.table_height(listed),
        hide_index=True,
        placeholder=words.NONE,
        column_config=_trial_columns(),
        alt="All trials of this table",
    )
    parts.notices(survey.notices)
    parts.footer(survey)


def _headline(table: Table, trials: Sequence[TrialRecord], survey: Survey) -> None:
    ranked = [row for row in table.rows if row.kind == "method" and row.heldout is not None]
    starter = next(row for row in table.rows if row.kind == "starter")
    done = sum(trial.state == State.FINISHED for trial in trials)
    judged = sum(len(trial.attempts) for trial in trials)
    columns = st.columns(4)
    best = ranked[0] if ranked else None
    speed = f"{words.three(best.heldout.value)} ×" if best and best.heldout else "none yet"
    columns[0].metric("Best held-out speedup", speed, border=True)
    columns[0].caption(_best(table, best) if best else "")
    columns[1].metric("Starter", f"{words.three(starter.search_time)} ×", border=True)
    columns[1].caption("evaluation 0, on the search workloads")
    columns[2].metric("Trials finished", f"{done} of {len(trials)}", border=True)
    columns[2].caption(f"{judged} candidates judged on {words.literal(table.partition.device)}")
    columns[3].metric("Data as of", words.day(survey.as_of) if survey.as_of else words.NONE, border=True)
    columns[3].caption(words.moment(survey.as_of) if survey.as_of else "")


def _best(table: Table, row: Row) -> str:
    """Whose number it is, and what must be known before believing it."""
    name, marks = words.literal(table.label(row)), "".join(f", {mark}" for mark in row.marks)
    return f"{name}: {words.interval(row.heldout)}, {_seeds(row.seeds)}{marks}"


def _seeds(count: int) -> str:
    return f"{count} seed" if count == 1 else f"{count} seeds"


def _columns(table: Table) -> dict[str, ColumnConfig]:
    small = any(0 < (row.heldout.value if row.heldout else 1) < 0.1 for row in table.rows)
    speed = "%.3f" if small else "%.2f"
    return {
        "rank": TEXT("Rank", width=45, help="Shared where a test over seeds cannot tell methods apart; –: not ranked."),
        "method": TEXT("Method", width=133),
        "heldout": NUMBER("Held-out (×)", format=speed, width=88, help="Ranked: champions on workloads no method saw."),
        "heldout_interval": TEXT("95 % interval", width=94, help="Of the held-out speedup."),
        "marks": TEXT("Marks", width=222),
        "search": NUMBER("Search (×)", format=speed, width=75, help="The same re-measurement on the search workloads."),
        "search_time": NUMBER("Search-time (×)", format=speed, width=98, help="What the trials themselves measured."),
        "seeds": NUMBER("Seeds", format="%d", width=50),
        "evaluations": NUMBER("Evaluations", format="%.0f", width=78, help="Charged, mean per trial."),
        "tokens": TEXT("Tokens", width=60, help="Input + output, mean per trial."),
        "usd": TEXT("US$", width=68, help="Mean per trial."),
        "wall": TEXT("Time", width=70, help="Charged wall time, mean per trial."),
        "gflops": NUMBER("GFLOPS", format="%.1f", width=65),
        "gbytes_per_s": NUMBER("GB/s", format="%.1f", width=55),
        "checked": TEXT("Checked", width=62, help="verified: measured by this installation; claimed: elsewhere."),
        "measured": TEXT("Measured", width=82),
    }


def _downloads(table: Table) -> None:
    rows = as_dicts([table])
    name = f"standings-{table.partition.edition}-{table.partition.id}"
    row = st.container(horizontal=True)
    csv = pd.DataFrame(rows).to_csv(index=False)
    row.download_button("Table as CSV", csv, f"{name}.csv", "text/csv", on_click="ignore")
    text = json.dumps(rows, indent=1)
    row.download_button("Table as JSON", text, f"{name}.json", "application/json", on_click="ignore")


def _charts(table: Table, trials: Sequence[TrialRecord]) -> None:
    left, right = st.columns(2)
    with left:
        st.subheader("Speedup of the champions")
        st.caption("Large dots: held-out workloads; small rings: search workloads. Bars: 95 % interval.")
        st.plotly_chart(charts.intervals(table), key="intervals", alt="Speedup and interval of each method")
    with right:
        _convergence(table, trials)


def _convergence(table: Table, trials: Sequence[TrialRecord]) -> None:
    st.subheader("Convergence")
    row = st.container(horizontal=True)
    with row:
        axis = parts.axis()
    shown = row.segmented_control("Lines", LINES, default=LINES[0], required=True, key="lines", bind="query-params")
    by_id = {trial.id: trial for trial in trials}
    rows = [row for row in table.rows if row.kind == "method"]
    methods = [curves.Method(table.label(row), row.name, tuple(by_id[one] for one in row.shown)) for row in rows]
    named = [(method.label, method.trials) for method in methods]
    if why := steps.nothing(named, axis):
        st.info(why)
        return
    if shown == LINES[0]:
        figure, legend = curves.methods(methods, axis), [LEGEND]
    else:
        figure, legend = curves.every_trial([trial for method in methods for trial in method.trials], axis), []
    st.plotly_chart(figure, key="curves", alt="Best search-time speedup so far of each method")
    st.caption(" ".join((*legend, *steps.remarks(named, axis))))


def _trial_columns() -> dict[str, ColumnConfig]:
    return {
        "page": st.column_config.LinkColumn("Page", display_text="open", width=60),
        "method": TEXT("Method"),
        "options": TEXT("Options"),
        "seed": NUMBER("Seed", format="%d", width=55),
        "state": TEXT("State"),
        "reason": TEXT("Reason"),
        "evaluations": TEXT("Evaluations"),
        "search_time": NUMBER("Best at search time (×)", format="%.2f"),
        "heldout": TEXT("Champion, held-out (×)"),
        "busy": TEXT("Marks"),
        "last": TEXT("Last line of the ledger"),
    }
