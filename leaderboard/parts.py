"""Pieces that both pages show: empty and error states, the footer, the words behind marks and endings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import pandas as pd
import streamlit as st

from leaderboard import words
from leaderboard.reading import Notice, Survey
from leaderboard.standings import Table
from leaderboard.steps import AXES, Axis
from suite.errors import LedgerError

REFRESH = "5s"
"""How often a page with an unfinished trial reads the ledgers again."""

MARKS = """
- **speedup**: time of the baseline / time of the candidate, both measured in the same session on the same contents;
  the geometric mean over workloads. 1.00 is the baseline, below 1 is slower. A wrong or failed workload makes it 0.
- **held-out**: the champion on workloads no method saw, measured again after the trial with fresh secret seeds.
  This number is ranked. **search**: the same measurement on the workloads methods saw. **search-time**: what the trial
  itself measured; being the best of many noisy numbers it is flattering.
- **interval**: 95 %; over seeds (Student's t on the log-speedup) from three seeds on, else over launches of one
  champion, which says nothing about luck between seeds.
- **rank**: 1 + the number of methods shown to be better (Welch's t over seeds, Holm, 5 %); methods that cannot be told
  apart share a rank. Fewer than three seeds: not ranked.
- **preliminary**: fewer than five seeds. **no LLM**: no language model was asked; such rows are never in one
  table with a real model's. **machine busy**: other processes used the machine while the number was timed.
- **claimed**: measured elsewhere and not judged again here; all other numbers were measured by this installation.
- **GFLOPS, GB/s**: necessary operations and bytes / median time of the champion, geometric mean over the held-out
  workloads.
"""


def empty(survey: Survey) -> bool:
    """Says so where there is nothing to show; True if there is not."""
    if survey.trials:
        return False
    st.title("Kernel Derby")
    st.info("No race yet. Run `make demo` for a first one (about three minutes), then reload this page.")
    notices(survey.notices)
    return True


def axis() -> Axis:
    """Lets the reader choose what curves are drawn against."""
    chosen = st.segmented_control("Against", AXES, default=AXES[0], required=True, key="axis", bind="query-params")
    return chosen or AXES[0]


def table_height(rows: pd.DataFrame) -> int | Literal["content"]:
    """A table stands open while it fits a screen or so, and scrolls within itself when it is longer."""
    return "content" if len(rows) <= 40 else 1000


def title(table: Table) -> str:
    """What a table is called where one is chosen, and in addresses."""
    return f"{table.partition.title} · {table.partition.id}"


LONG = 60_000
"""Characters from which only the beginning of a text is shown, beside a button for the whole."""


def text(content: str, name: str, language: str | None = None) -> None:
    """A stranger's text, as text only: never read as Markdown or HTML. `name`: of the file to save it in."""
    shown = words.plain(content[:LONG])
    height: int | Literal["content"] = 640 if shown.count("\n") > 30 or len(shown) > 4000 else "content"
    st.code(shown, language=language, line_numbers=language is not None, wrap_lines=language is None, height=height)
    if len(content) > LONG:
        st.caption(f"The first {LONG:,} of {len(content):,} characters.")
        st.download_button(
            "The whole text", content, f"{name}.txt", "text/plain", on_click="ignore", key=f"whole-{name}"
        )


def pairs(values: Mapping[str, str]) -> None:
    """Names and values as a table; both may be a stranger's."""
    # Its cells read Markdown: an image in one would be fetched from wherever it says.
    st.table({words.literal(name): words.literal(text) for name, text in values.items()})


def conditions(title: str) -> None:
    """All that trials share: a chooser cuts it off, and what ends it, the timing protocol, is no small print."""
    st.caption(words.literal(title))


@contextmanager
def told() -> Iterator[None]:
    """Around what is fetched from a ledger: one that has been tampered with is said in three parts."""
    try:
        yield
    except LedgerError as error:
        st.error("A line of the ledger cannot be read.")
        st.code(f"{error.came}\n  expected: {error.expected}\n  do: {error.todo}", language=None, wrap_lines=True)


def notices(found: tuple[Notice, ...]) -> None:
    """Ledgers that are not on the board, each in three parts."""
    if not found:
        return
    several = f"{len(found)} ledgers cannot be read and so are not counted here."
    st.warning(several if len(found) > 1 else "1 ledger cannot be read and so is not counted here.")
    with st.expander("What is wrong, and what to do"):
        for notice in found:
            text = f"{notice.ledger}\n{notice.came}\n  expected: {notice.expected}\n  do: {notice.todo}"
            st.code(text, language=None, wrap_lines=True)


def footer(survey: Survey) -> None:
    """Where the numbers come from and how old they are."""
    if survey.as_of:
        st.caption(
            f"Kernel Derby · data as of {words.moment(survey.as_of)} · every number is derived from the ledgers."
        )
