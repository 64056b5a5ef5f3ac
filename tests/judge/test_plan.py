"""Plans keep what the protocol promises."""

from __future__ import annotations

import os

import pytest
from pydantic import ValidationError

from suite.judge.plan import CHAMPION, PLANS, SEARCH, JudgeSettings, TimingPlan
from suite.types import TIMING_PROTOCOL, Tier


def test_the_search_tier_is_one_short_launch_that_may_be_cut() -> None:
    assert SEARCH.launches == 1 and SEARCH.seconds <= 0.4 and SEARCH.hopeless_below is not None


def test_the_champion_tier_is_long_never_cut_and_has_launches_enough_for_an_interval() -> None:
    assert CHAMPION.launches >= 3 and CHAMPION.seconds >= 3.0 and CHAMPION.hopeless_below is None


def test_a_brief_race_searches_as_ever_and_has_launches_enough_for_an_interval() -> None:
    search, champion = PLANS["brief"]
    assert search == SEARCH and 3 <= champion.launches <= CHAMPION.launches


def test_a_champion_meets_all_contents_at_all_timed_shapes_and_a_candidate_one() -> None:
    assert CHAMPION.spots is None and SEARCH.spots == 1


def test_both_tiers_measure_the_empty_round_trip_thirty_times() -> None:
    assert min(SEARCH.empty_calls, CHAMPION.empty_calls) >= 30


@pytest.mark.parametrize("change", [{"launches": 0}, {"seconds": 0.0}, {"min_quads": 1}, {"reference_share": 2.0}])
def test_a_plan_without_sense_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        TimingPlan.model_validate({"launches": 1, "seconds": 0.1} | change)


def test_settings_default_to_the_cpus_this_process_may_use_and_pick_the_plan_by_tier() -> None:
    settings = JudgeSettings()
    assert set(settings.cpus) == os.sched_getaffinity(0)
    assert (settings.plan(Tier.SEARCH), settings.plan(Tier.CHAMPION)) == (SEARCH, CHAMPION)


def test_only_the_standard_plans_bear_the_standards_name() -> None:
    standard = JudgeSettings(cpus=(0,))
    assert standard.protocol == TIMING_PROTOCOL
    assert standard.timed("standard") == standard
    assert {standard.timed(name).protocol for name in PLANS} == {
        TIMING_PROTOCOL,
        f"{TIMING_PROTOCOL}-brief",
        f"{TIMING_PROTOCOL}-tiny",
    }
    assert standard.model_copy(update={"search": CHAMPION}).protocol == f"{TIMING_PROTOCOL}-custom"
