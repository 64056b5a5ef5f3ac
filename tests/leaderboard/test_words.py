"""Numbers read the same everywhere: three significant digits and a unit."""

from __future__ import annotations

import re

import pytest

from leaderboard import words
from suite.score import ZERO, Estimate
from suite.types import Budget, MethodSpec, Status
from tests.leaderboard.canned import LLM, TUNER


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123456, "0.0123"), (0.41, "0.410"), (0.9996, "1.00"), (1.2345, "1.23"), (99.96, "100"), (12345.0, "12300")],
)
def test_three_significant_digits_without_exponent(value: float, text: str) -> None:
    assert words.three(value) == text


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_no_number_is_a_dash(value: float | None) -> None:
    assert words.three(value) == words.NONE


def test_an_interval_is_shown_only_where_there_is_one() -> None:
    assert words.interval(Estimate(value=1.234, low=1.2, high=1.271)) == "1.23 [1.20, 1.27]"
    assert words.interval(Estimate(value=1.234)) == "1.23"
    assert words.interval(ZERO) == "0"
    assert words.interval(None) == words.NONE


def test_an_unknown_price_is_not_free() -> None:
    assert (words.usd(None), words.usd(0.0), words.usd(1.005)) == ("unknown", "$0.00", "$1.00")


@pytest.mark.parametrize(("duration", "text"), [(41.6, "42 s"), (200, "3 min 20 s"), (3900, "1 h 5 min")])
def test_durations(duration: float, text: str) -> None:
    assert words.seconds(duration) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (950, "950"), (12_345, "12.3 k"), (4_560_000, "4.56 M")])
def test_token_counts(count: float, text: str) -> None:
    assert words.tokens(count) == text


def test_times_are_utc() -> None:
    assert words.moment("2026-11-30T15:05:30+01:00") == "2026-11-30 14:05 UTC"
    assert words.day("2026-12-01T00:30:00+01:00") == "2026-11-30"


def test_a_stand_in_is_never_called_a_model() -> None:
    assert words.model(None) == words.model(TUNER) == "no LLM"
    assert words.model(LLM) == "large-1 (high)"
    assert words.model(LLM.model_copy(update={"effort": None})) == "large-1"


def test_budget_and_options_name_only_what_is_set() -> None:
    assert words.budget(Budget(evaluations=16, usd=5)) == "16 evaluations, $5.00"
    assert words.budget(Budget(tokens=1_000_000, wall_s=600)) == "1.00 M tokens, 10 min 0 s"
    method = MethodSpec(name="m", target="m:M", options={"width": 4, "patience": 3})
    assert words.options(method) == "patience 3, width 4"


def test_every_ending_has_words() -> None:
    assert words.ENDINGS.keys() == set(Status)


@pytest.mark.parametrize("letter", ["\x1b", "\u202e", "\u2066", "\u200b", "\r", "\x00"])
def test_marks_that_deceive_the_eye_become_visible(letter: str) -> None:
    assert words.plain(f"a{letter}b") == f"a⟨{ord(letter):04X}⟩b"


@pytest.mark.parametrize(
    "text", ["![i](http://x/i.png)", "$a$", ":red[b]", "a_b*c*", "<b>", "`t`", "- a", "1. a", "&lt;"]
)
def test_what_markdown_would_read_is_escaped(text: str) -> None:
    shown = words.literal(text)
    assert "\\" in shown and re.sub(r"\\(?=[!-/:-@[-`{-~])", "", shown) == text
    assert not re.search(r"(?<!\\)[\[\]$*_`<>&]", shown)


def test_literal_leaves_what_is_plain_in_one_line() -> None:
    assert words.literal("AMD EPYC 9B45,\n 2 cores (1.30 ×) - \u202e") == "AMD EPYC 9B45, 2 cores (1.30 ×) - ⟨202E⟩"


def test_plain_leaves_what_is_plain() -> None:
    text = "für x × 2;\n\tnächste Zeile 中 🏁"
    assert words.plain(text) == text


def test_the_price_of_one_call_has_three_digits() -> None:
    assert (words.cents(0.012345), words.cents(0.0), words.cents(None)) == ("$0.0123", "$0", "unknown")
