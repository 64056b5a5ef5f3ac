"""Ranks are shared unless a test over seeds tells methods apart."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.ranks import holm, shared_ranks, welch

SPEEDS = st.floats(0.05, 20)


def test_welch_agrees_with_a_value_worked_by_hand() -> None:
    # Logs 0, 1, 2 and 3, 4, 5: variances 1, error sqrt(2/3), t = 3.674 with 4 degrees of freedom.
    p = welch([math.exp(x) for x in (0, 1, 2)], [math.exp(x) for x in (3, 4, 5)])
    assert p == pytest.approx(0.02131, abs=1e-4)


def test_equal_seeds_of_deterministic_methods_are_one_or_no_doubt_at_all() -> None:
    assert welch([1.2] * 3, [1.2] * 3) == 1.0
    assert welch([1.2] * 3, [1.3] * 3) == 0.0


def test_holm_agrees_with_a_value_worked_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_makes_a_difference_more_certain_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= better <= 1 for p, better in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert [adjusted[index] for index in order] == sorted(adjusted)


def test_methods_that_cannot_be_told_apart_share_a_rank() -> None:
    rng = random.Random(1)
    alike = [[math.exp(rng.gauss(0.2, 0.05)) for _ in range(5)] for _ in range(2)]
    slow = [math.exp(rng.gauss(-0.5, 0.05)) for _ in range(5)]
    assert shared_ranks([slow, *alike]) == [3, 1, 1]


def test_fewer_than_three_seeds_are_not_ranked_and_beat_nobody() -> None:
    assert shared_ranks([[9.0, 9.1], [1.0, 1.1, 1.2]]) == [None, 1]
    assert shared_ranks([[], [2.0]]) == [None, None]


def test_a_failed_champion_puts_a_method_below_all_that_have_none() -> None:
    assert shared_ranks([[5.0, 5.1, 0.0], [0.5, 0.6, 0.4], [0.0, 0.0, 0.0]]) == [2, 1, 2]


@given(st.lists(st.lists(SPEEDS, min_size=3, max_size=6), min_size=1, max_size=5), st.data())
def test_a_seed_that_fails_never_improves_a_rank(rows: list[list[float]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    seed = data.draw(st.integers(0, len(rows[place]) - 1))
    worse = [list(row) for row in rows]
    worse[place][seed] = 0.0
    before, after = shared_ranks(rows)[place], shared_ranks(worse)[place]
    assert before is not None and after is not None and after >= before
