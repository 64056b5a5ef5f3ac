"""Faithful by default: every recorded decision of the original comes out again, event by event."""

from __future__ import annotations

import pytest

from tests.methods.ksearch.replay import expected, play, scenarios


@pytest.mark.parametrize("name", scenarios())
def test_it_decides_as_the_original_did(name: str) -> None:
    scenario = scenarios()[name]
    played = play(scenario)
    assert played.events == expected(scenario)
    assert played.left_over() == 0


def test_all_scenarios_are_there() -> None:
    assert len(scenarios()) == 65
