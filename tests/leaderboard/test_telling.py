"""A record says which call a candidate came from, forgets no call, and is the same however often it was read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from leaderboard import texts
from leaderboard.reading import Notice, load, read_trial
from leaderboard.records import CallState, TrialRecord
from suite.errors import LedgerError
from suite.events import Event, ModelCalled, ModelRequested, Refunded, TrialResumed
from suite.ledger import Ledger
from suite.types import Prediction, Spent
from tests.leaderboard import canned
from tests.leaderboard.canned import Plan


def told(runs: Path, events: Sequence[Event]) -> TrialRecord:
    path = runs / "race" / "trials" / "t" / "ledger.jsonl"
    with Ledger.open(path) as ledger:
        for event in events:
            ledger.append(event)
    (trial,) = load(runs)
    return trial


def replying(events: Sequence[Event], replies: dict[int, str]) -> list[Event]:
    """The events, with other replies to some calls."""
    return [
        event.model_copy(update={"reply": replies[event.call]})
        if isinstance(event, ModelCalled) and event.call in replies
        else event
        for event in events
    ]


def fenced(number: int) -> str:
    return f"Here.\n```cpp\n{canned.candidate(number).text()}```\nDone."


def test_a_candidate_is_put_down_to_the_call_whose_reply_holds_its_source(tmp_path: Path) -> None:
    trial = told(tmp_path, canned.events(Plan()))
    assert [(attempt.number, attempt.origin, attempt.by_source) for attempt in trial.attempts] == [
        (0, None, False),
        *[(number, number, True) for number in range(1, 6)],
    ]


def test_a_reply_from_before_the_last_verdict_counts_if_it_holds_the_source(tmp_path: Path) -> None:
    replies = {1: fenced(1) + fenced(3), 3: "I would rather plan."}
    third = told(tmp_path, replying(canned.events(Plan()), replies)).attempts[3]
    assert (third.origin, third.by_source, third.calls) == (1, True, (3,))


def test_without_the_source_in_any_reply_it_is_the_last_call(tmp_path: Path) -> None:
    second = told(tmp_path, replying(canned.events(Plan()), {2: "<<<<<<< SEARCH"})).attempts[2]
    assert (second.origin, second.by_source) == (2, False)


def test_of_two_replies_with_the_source_the_later_counts(tmp_path: Path) -> None:
    assert told(tmp_path, replying(canned.events(Plan()), {1: fenced(2), 2: fenced(2)})).attempts[2].origin == 2


def test_a_method_without_a_model_has_no_calls(tmp_path: Path) -> None:
    trial = told(tmp_path, canned.events(Plan("tpe", model=None)))
    assert trial.calls == () and all(attempt.origin is None for attempt in trial.attempts)


def test_calls_without_an_answer_are_kept_with_their_end(tmp_path: Path) -> None:
    start, evaluated, *_ = canned.events(Plan(finished=False))
    asked = [ModelRequested(call=number, request="r", reserved_tokens=10) for number in (1, 2, 3)]
    refunded = Refunded(what="model_call", subject="1", reason="503 overloaded", attempt=1, spent=Spent(refunds=1))
    events = [start, evaluated, asked[0], refunded, asked[1], TrialResumed(environment={}), asked[2]]
    trial = told(tmp_path, events)
    assert [call.state for call in trial.calls] == [CallState.FAILED, CallState.LOST, CallState.OPEN]
    assert trial.calls[0].reason == "503 overloaded"
    assert texts.asked(trial, trial.calls[0]) is None


def test_a_call_is_told_with_what_it_took(tmp_path: Path) -> None:
    call = told(tmp_path, canned.events(Plan(model=canned.LLM, usd=0.5))).calls[1]
    assert (call.usage, call.usd, call.seconds, call.state) == (canned.USAGE, 0.5, 1.5, CallState.ANSWERED)
    assert call.chars == (len("You write kernels.") + len("Faster, please."), len(canned.candidate(2).text()) + 10)
    assert len(call.blocks) == 1


def test_predictions_stand_beside_the_attempts(tmp_path: Path) -> None:
    trial = told(tmp_path, canned.events(Plan(predicted=[None, Prediction(speedup=2.0)])))
    assert [attempt.predicted for attempt in trial.attempts[:3]] == [None, None, Prediction(speedup=2.0)]


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 9, 17])
def test_a_ledger_read_in_parts_is_the_ledger_read_whole(tmp_path: Path, cut: int) -> None:
    events = canned.events(Plan())
    path = tmp_path / "race" / "trials" / "t" / "ledger.jsonl"
    record: TrialRecord | Notice | None = None
    for part in (events[:cut], events[cut:]):
        with Ledger.open(path) as ledger:
            for event in part:
                ledger.append(event)
        assert not isinstance(record, Notice)
        record = read_trial(path, record)
    assert record == read_trial(path)


def test_reading_on_finds_nothing_new_and_keeps_the_record(tmp_path: Path) -> None:
    path = canned.write(tmp_path, Plan())
    record = read_trial(path)
    assert isinstance(record, TrialRecord) and read_trial(path, record) is record


def test_another_ledger_in_the_same_place_is_read_anew(tmp_path: Path) -> None:
    path = canned.write(tmp_path / "a", Plan(speeds=(0.4, 0.5)))
    record = read_trial(path)
    assert isinstance(record, TrialRecord)
    path.write_bytes(canned.write(tmp_path / "b", Plan()).read_bytes())
    assert read_trial(path, record) == read_trial(path)


def test_texts_come_from_their_own_lines(tmp_path: Path) -> None:
    canned.write(tmp_path, Plan(helper=True))
    (trial,) = load(tmp_path)
    judged = texts.judged(trial, trial.attempts[3])
    assert judged.candidate == canned.candidate(3, helper=True) and judged.number == 3
    called = texts.asked(trial, trial.calls[3])
    assert called is not None and called.call == 4 and called.messages[1].content == "Faster, please."


def test_a_text_that_was_edited_afterwards_is_refused(tmp_path: Path) -> None:
    path = canned.write(tmp_path, Plan())
    (trial,) = load(tmp_path)
    path.write_text(path.read_text().replace("candidate 3", "candidate 4"))
    with pytest.raises(LedgerError, match="edited"):
        texts.judged(trial, trial.attempts[3])


def test_a_line_that_is_another_by_now_is_refused(tmp_path: Path) -> None:
    path = canned.write(tmp_path / "a", Plan())
    (trial,) = load(tmp_path / "a")
    path.write_bytes(canned.write(tmp_path / "b", Plan("tpe", model=None)).read_bytes())
    with pytest.raises(LedgerError):
        texts.asked(trial, trial.calls[0])
