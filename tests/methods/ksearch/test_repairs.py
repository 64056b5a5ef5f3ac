"""Every repaired defect is a switch: off it decides as recorded, on it changes that behaviour and no other."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from methods.ksearch.rules import Rules
from tests.methods.ksearch.replay import Event, Scenario, expected, play, scenarios

Told = Callable[[Scenario], bool]
EMPTY: dict[str, Any] = {"ops": []}


def marked(*names: str) -> Told:
    return lambda scenario: any(defect["name"] in names for defect in scenario["defects"])


def happens(**facts: object) -> Told:
    """Some recorded event has these facts."""
    return lambda scenario: any(facts.items() <= _flat(event).items() for event in scenario["expected"])


def _flat(event: Event) -> Event:
    return {key: value for key, value in event.items() if isinstance(value, str | int | float | type(None))}


def seeded(scenario: Scenario) -> bool:
    return scenario["settings"]["seed"] is not None


def slower_than_parent(scenario: Scenario) -> bool:
    ends = [event for event in scenario["expected"] if event["ev"] == "cycle_end" and event["best"]]
    return any(event["parent_score"] > 0 and event["best_score"] <= event["parent_score"] for event in ends)


def propose_unreadable(scenario: Scenario) -> bool:
    return any(reply["for"] == "propose" and "json" not in reply for reply in scenario["wm_replies"])


CONCERNS: dict[str, Told] = {
    "min_gain": marked("no_improvement_margin"),
    "lower_failed_actions": happens(ev="llm", kind="too_hard"),
    "close_only_when_faster": slower_than_parent,
    "retry_from_clean_tree": happens(ev="verdict", ok=False),
    "reject_unknown_solutions": marked("unknown_solution_id_accepted"),
    "unique_ids": marked("generated_ids_collide"),
    "retry_unparsable_propose": propose_unreadable,
    "keep_higher_limit": marked("relaxed_limit_drops"),
    "seed_in_global_best": seeded,
    "seed_in_init": seeded,
    "seed_kept_on_bad_init": marked("seed_lost_on_bad_init"),
    "ignore_failed_parent_score": marked("failed_parent_score_counts"),
    "refine_without_latency": marked("refine_needs_latency"),
    "scan_all_objects": marked("parser_first_object_only"),
    "survive_model_errors": marked("llm_error_kills_run"),
}
"""Switch -> the scenarios in which the situation occurs that it is for."""


def rules_for(scenario: Scenario, switch: str) -> Rules:
    limit = scenario["settings"]["max_difficulty"]
    rules = Rules(max_difficulty=4 if limit is None else limit)
    return replace(rules, min_gain=0.02) if switch == "min_gain" else replace(rules, **{switch: True})


@pytest.mark.parametrize("switch", CONCERNS)
def test_a_switch_changes_no_scenario_it_is_not_for(switch: str) -> None:
    others = [scenario for scenario in scenarios().values() if not CONCERNS[switch](scenario)]
    assert len(others) > 20
    for scenario in others:
        assert play(scenario, rules_for(scenario, switch)).events == expected(scenario), scenario["id"]


def replayed(name: str, switch: str, **settings: object) -> list[Event]:
    """The events of a scenario with a switch on and perhaps other settings."""
    scenario = copy.deepcopy(scenarios()[name])
    scenario["settings"] |= settings
    return play(scenario, rules_for(scenario, switch)).events


def rewritten(name: str, switch: str, planned: list[dict[str, Any]]) -> list[Event]:
    """The events of a scenario with a switch on and other planning replies after the first."""
    scenario = copy.deepcopy(scenarios()[name])
    scenario["wm_replies"] = scenario["wm_replies"][:1] + planned
    return play(scenario, rules_for(scenario, switch)).events


def say(kind: str, script: dict[str, Any]) -> dict[str, Any]:
    return {"for": kind, "json": script}


def insert(parent: str, name: str, value: float = 0.5) -> dict[str, Any]:
    action = {"title": f"try {name}", "difficulty_1_to_5": 2, "score_0_to_1": value}
    return {"op": "insert_node", "parent_id": parent, "node": {"node_id": name, "action": action}}


def only(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["ev"] == kind]


def chosen(events: list[Event]) -> list[str]:
    return [event["node"] for event in only(events, "choose")]


def last_tree(events: list[Event]) -> dict[str, list[Any]]:
    return {row[0]: row for row in only(events, "tree")[-1]["nodes"]}


def test_a_failed_action_loses_half_its_value_when_the_model_does_not_lower_it() -> None:
    events = replayed("too_hard_ignored", "lower_failed_actions")
    assert chosen(events) == ["tile", "split"]
    assert last_tree(events)["tile"][4] == 0.45
    lowered = replayed("too_hard_then_success", "lower_failed_actions")
    assert lowered == expected(scenarios()["too_hard_then_success"])


def test_a_gain_within_the_margin_is_kept_but_renews_no_patience() -> None:
    events = replayed("creeping_score", "min_gain", max_rounds=3)
    (end,) = only(events, "cycle_end")
    assert (end["stop"], end["attempts"], end["best"]) == ("stall", 3, "code_003")


def test_a_cycle_slower_than_its_parent_closes_nothing() -> None:
    first = scenarios()["stall_below_parent"]["wm_replies"][1]
    events = rewritten("stall_below_parent", "close_only_when_faster", [first, say("too_hard", EMPTY)])
    assert [event["node"] for event in only(events, "attach")] == ["tile"]
    assert events[-2]["ev"] == "edit" and events[-1] == {"ev": "result", "code": "code_001"}
    assert last_tree(events)["vec"][2] == "open"


def test_rejected_scripts_leave_nothing_behind() -> None:
    refined = last_tree(replayed("edit_cap_and_retry", "retry_from_clean_tree"))
    assert set(refined) == {"root", "tile", "split", "fuse", "gen1"}
    assert set(last_tree(replayed("propose_fails_twice", "retry_from_clean_tree"))) == {"root", "tile", "c"}


def test_programs_nobody_judged_are_dropped() -> None:
    made_up = scenarios()["fabricated_solution"]["wm_replies"][1]
    learned = say("refine", {"ops": [insert("tile", "k2")]})
    events = rewritten("fabricated_solution", "reject_unknown_solutions", [made_up, learned])
    assert chosen(events) == ["tile", "tile"]
    assert last_tree(events)["split"][2] == "open"
    tampered = replayed("solution_id_tampering", "reject_unknown_solutions")
    assert last_tree(tampered)["tile"][6] == "code_001"
    assert [event["try"] for event in tampered if event.get("kind") == "refine"] == [1]


def test_ids_made_here_are_free() -> None:
    replies = scenarios()["edit_id_collision_twice"]["wm_replies"][1:4]
    learned = say("refine", {"ops": [insert("@gen2", "y", 0.3)]})
    events = rewritten("edit_id_collision_twice", "unique_ids", [*replies, learned])
    assert chosen(events) == ["tile", "gen1", "gen2"]
    for tree in only(events, "tree"):
        names = [row[0] for row in tree["nodes"]]
        assert len(names) == len(set(names))


def test_an_unreadable_proposal_is_one_try_of_three() -> None:
    first, unreadable = scenarios()["propose_unparsable"]["wm_replies"][1:3]
    good = say("propose", {"ops": [insert("root", "b", 0.7)]})
    events = rewritten(
        "propose_unparsable", "retry_unparsable_propose", [first, unreadable, good, say("too_hard", EMPTY)]
    )
    assert set(last_tree(events)) == {"root", "tile", "a", "b"}
    assert chosen(events) == ["b"]
    replies = scenarios()["propose_unparsable_no_generic"]["wm_replies"][1:4]
    poor = [say("propose", EMPTY), say("propose", EMPTY), say("too_hard", EMPTY)]
    events = rewritten("propose_unparsable_no_generic", "retry_unparsable_propose", [*replies, *poor])
    assert only(events, "generic_child") == [{"ev": "generic_child", "by": "propose", "parent": "tile"}]


def test_a_higher_limit_survives_success() -> None:
    assert chosen(replayed("difficulty_flag5_drops", "keep_higher_limit")) == ["mega", "mega2"]


def test_the_seed_may_be_the_result() -> None:
    events = replayed("seed_given", "seed_in_global_best")
    assert events[:-1] == expected(scenarios()["seed_given"])[:-1]
    assert events[-1]["code"] == "seed_000"


def test_the_first_question_may_show_the_seed() -> None:
    events, recorded = replayed("seed_given", "seed_in_init"), expected(scenarios()["seed_given"])
    assert events[1] == recorded[1] | {"code": "seed_000"}
    assert events[2:] == recorded[2:]


@pytest.mark.parametrize("name", ["seed_init_unparsable", "llm_error_init_seeded"])
def test_a_repeated_first_question_keeps_the_seed(name: str) -> None:
    events = replayed(name, "seed_kept_on_bad_init")
    assert last_tree(events)["root"][6] == "seed_000"
    assert next(event for event in events if event.get("kind") == "action")["base"] == "seed_000"


def test_a_failed_parents_score_is_no_bar() -> None:
    events = replayed("seed_failed_with_score", "ignore_failed_parent_score")
    (end,) = only(events, "cycle_end")
    assert (end["parent_score"], end["stop"]) == (-1, "budget")
    assert next(event for event in events if event.get("kind") == "debug")["base"] is None


def test_a_pass_without_latency_is_learned_from() -> None:
    replies = scenarios()["pass_without_latency"]["wm_replies"][1:]
    events = rewritten("pass_without_latency", "refine_without_latency", [replies[0] | {"for": "refine"}, replies[1]])
    assert only(events, "refine_skipped") == []
    assert last_tree(events)["vec"][2] == "closed"


def test_a_script_behind_other_braces_is_found() -> None:
    events = replayed("reply_first_object_only", "scan_all_objects")
    assert "fuse" not in last_tree(events)
    assert len(only(events, "edit")) == 3


LEARNED = say("refine", {"ops": [insert("tile", "vec", 0.3)]})
ANOTHER_TREE = say("init", {"decision_tree": {"nodes": [insert("", name, 0.9)["node"] for name in ("a", "b", "c")]}})


@pytest.mark.parametrize(
    ("name", "planned"),
    [
        ("llm_error_refine", [LEARNED, say("too_hard", EMPTY)]),
        ("llm_error_code", [LEARNED, say("too_hard", EMPTY)]),
        ("llm_error_init", [ANOTHER_TREE, say("too_hard", EMPTY)]),
    ],
)
def test_a_lost_answer_does_not_end_the_run(name: str, planned: list[dict[str, Any]]) -> None:
    scenario = copy.deepcopy(scenarios()[name])
    scenario["wm_replies"] += planned
    scenario["code_replies"] += ["code_001"] if name == "llm_error_init" else ["code_008", "code_009"]
    scenario["evals"] += [{"pass": False}] * 2
    events = play(scenario, rules_for(scenario, "survive_model_errors")).events
    assert events[-1] == {"ev": "result", "code": "code_001"}


def test_a_model_that_never_gives_a_kernel_is_given_up_on() -> None:
    scenario = copy.deepcopy(scenarios()["code_reply_unusable"])
    scenario["code_replies"] = ["!bad x"] * 100
    scenario["wm_replies"] += [say("too_hard", EMPTY)] * 20
    events = play(scenario, rules_for(scenario, "survive_model_errors")).events
    assert len([event for event in events if event.get("kind") == "action"]) == 50
    assert events[-1] == {"ev": "result", "code": None, "error": "no_solution"}
