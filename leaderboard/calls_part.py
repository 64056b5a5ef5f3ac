"""Model calls on the trial page: those that led to a candidate, and a list of all of them with prompt and reply."""

from __future__ import annotations

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from leaderboard import frames, parts, texts, words
from leaderboard.records import Attempt, Call, TrialRecord

NUMBER = st.column_config.NumberColumn
TEXT = st.column_config.TextColumn

RULE = (
    "A candidate is put down to the last call before its verdict whose reply has a code block equal to the candidate's "
    "entry file (*its source is in the reply*), else, as with edits and tool calls, to the last call before it (*by "
    "order of time*). With several at once the latter can be wrong."
)


def show(trial: TrialRecord) -> None:
    st.subheader("Prompts and replies")
    if not trial.calls:
        st.caption("No model was asked in this trial.")
        return
    rows = frames.call_frame(trial)
    height = parts.table_height(rows) if len(rows) <= 12 else 460
    st.dataframe(
        rows,
        height=height,
        hide_index=True,
        placeholder=words.NONE,
        column_config=_columns(),
        alt="All model calls of this trial, failed ones and those without code included",
    )
    st.caption(RULE)
    left, right = st.columns([2, 3])
    candidates = {f"candidate {attempt.number}": attempt for attempt in trial.attempts if attempt.number}
    by = left.selectbox("The calls behind", list(candidates), index=None, placeholder="any candidate", key="from")
    attempt = candidates[by] if by else None
    labels = {_label(call): call for call in _shown(trial, attempt)}
    if not labels:
        st.caption("No call is recorded before that candidate's verdict.")
        return
    first = 0 if attempt else len(labels) - 1
    chosen = right.selectbox("Call", list(labels), index=first, key=f"call-{by}" if by else "call")
    if attempt:
        st.caption(_behind(attempt))
    with parts.told():
        _call(trial, labels[chosen])


def _shown(trial: TrialRecord, attempt: Attempt | None) -> list[Call]:
    """The calls to choose from: all, or those behind one candidate, its own first."""
    if attempt is None:
        return list(trial.calls)
    led = _led(attempt)
    found = [call for call in trial.calls if call.number in led]
    return sorted(found, key=lambda call: call.number != attempt.origin)


def _led(attempt: Attempt) -> set[int]:
    origin = set() if attempt.origin is None else {attempt.origin}
    return origin | set(attempt.calls)


def _behind(attempt: Attempt) -> str:
    how = "its source is in the reply" if attempt.by_source else "by order of time"
    others = sorted(_led(attempt) - {attempt.origin})
    more = f" Also answered since the verdict before: {', '.join(map(str, others))}." if others else ""
    return f"Candidate {attempt.number} comes from call {attempt.origin} ({how}).{more}"


def _label(call: Call) -> str:
    """Of what does not change as the trial goes on, else the reader's choice would be lost."""
    return f"{call.number}: {frames.yield_of(call) if call.line else call.state.value}"


def _call(trial: TrialRecord, call: Call) -> None:
    if call.reason:
        st.code(words.plain(call.reason), language=None, wrap_lines=True)
    event = texts.asked(trial, call)
    if event is None:
        st.caption(f"{call.state.value}: the ledger holds a prompt only together with its reply.")
        return
    st.caption(words.literal(frames.call_facts(call)))
    own = frames.put_down(trial).get(call.number, [])
    st.caption(f"Put down to it: {', '.join(f'candidate {number}' for number in own) or 'no candidate'}.")
    for place, message in enumerate(event.messages, start=1):
        title = f"Prompt {place} of {len(event.messages)} · {message.role} · {len(message.content):,} characters"
        with st.expander(title):
            parts.text(message.content, f"call-{call.number}-prompt-{place}")
    with st.expander(f"Reply · {len(event.reply):,} characters", expanded=True):
        parts.text(event.reply, f"call-{call.number}-reply")


def _columns() -> dict[str, ColumnConfig]:
    return {
        "number": NUMBER("Call", format="%d", width=50),
        "state": TEXT("State", width=110),
        "yielded": TEXT("Reply", width=110, help="Whether the reply has a code block."),
        "candidates": TEXT("Candidates", width=100, help="Put down to this call by the rule below."),
        "input": NUMBER("Tokens in", format="%d", width=80),
        "cached": NUMBER("of these cached", format="%d", width=105),
        "output": NUMBER("Tokens out", format="%d", width=85),
        "reasoning": NUMBER("of these reasoning", format="%d", width=125),
        "usd": TEXT("US$", width=75),
        "seconds": NUMBER("Seconds", format="%.1f", width=70),
        "waited": NUMBER("Waited (s)", format="%.1f", width=80, help="For the provider's quota; not charged."),
        "finish": TEXT("Ended by", width=80),
        "note": TEXT("Note or failure", width=300),
    }
