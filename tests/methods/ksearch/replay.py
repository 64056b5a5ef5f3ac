"""Plays the recorded scenarios of the original K-Search against our search, and writes down what it decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from methods.ksearch.cycle import Cycle
from methods.ksearch.edits import Report
from methods.ksearch.ports import CallFailed, CodeQuestion, UnusableReplies, WorldQuestion
from methods.ksearch.rules import Rules
from methods.ksearch.search import Search
from methods.ksearch.tree import Attempt, Node, Outcome, Program, Tree

GOLDEN = Path(__file__).parents[1] / "golden" / "ksearch.json"
MADE_HERE = "gen-"
"""How ids begin that the search makes itself; the recording calls them gen1, gen2, ... in order of appearance."""
Event = dict[str, Any]
Scenario = dict[str, Any]


@cache
def scenarios() -> dict[str, Scenario]:
    recorded = json.loads(GOLDEN.read_text())["scenarios"]
    return {scenario["id"]: scenario for scenario in recorded}


def outcome_of(told: dict[str, Any]) -> Outcome:
    """The recorded shorthand as an outcome: a pass has latency 1 / score and a ratio equal to its score."""
    score = told.get("score")
    if not told["pass"]:
        return Outcome(False, score=score, status="failed")
    timed = told.get("latency", True)
    latency = 1 / score if score else 1e9
    return Outcome(True, score=score, vs_base=told.get("vs_base", score), latency_ms=latency if timed else None)


class Stage:
    """The ports of a scenario: scripted answers and verdicts in, events out."""

    def __init__(self, scenario: Scenario) -> None:
        self.events: list[Event] = []
        self._plans, self._codes = list(scenario["wm_replies"]), list(scenario["code_replies"])
        self._verdicts = list(scenario["evals"])
        self._names: dict[str, str] = {}
        self._rows: list[list[Any]] | None = None
        self._usable = ""

    def left_over(self) -> int:
        """Scripted answers nobody asked for."""
        return len(self._plans) + len(self._codes) + len(self._verdicts)

    # ------------------------------------------------------------------------------------------ the ports

    def plan(self, question: WorldQuestion) -> str:
        told: Event = {"kind": question.kind, "code": question.shown.program.id if question.shown else None}
        if question.kind != "init":
            told |= {"try": question.turn, "round": question.round}
        if question.node is not None:
            told["node"] = self._name(question.node.id)
        self._tell("llm", **told)
        reply = self._plans.pop(0)
        assert reply["for"] == question.kind, f"a {question.kind} call where the original made a {reply['for']} call"
        if reply.get("raise"):
            raise CallFailed("scripted")
        return str(reply["text"]) if "text" in reply else json.dumps(self._filled(reply["json"]))

    def write(self, question: CodeQuestion) -> Program | None:
        self._tell(
            "llm",
            kind=question.kind,
            node=self._name(question.node.id),
            attempt=question.attempt,
            round=question.round,
            base=question.base.program.id if question.base else None,
            last=question.last.program.id if question.last else None,
            stall=question.stall,
            below=question.below,
        )
        reply = self._codes.pop(0)
        if reply == "!raise":
            raise CallFailed("scripted")
        return None if reply.startswith("!bad ") else Program(reply, reply)

    def judge(self, program: Program, question: CodeQuestion) -> Outcome:
        told = self._verdicts.pop(0)
        scored = {"score": told["score"]} if "score" in told else {}
        self._tell("eval", code=program.id, round=question.round, **{"pass": told["pass"]}, **scored)
        return outcome_of(told)

    def note(self, event: str, **facts: Any) -> None:
        teller: Callable[..., None] | None = getattr(self, f"_note_{event}", None)
        if teller is not None:
            teller(**facts)
        elif event != "eval":  # told when it was judged
            self._tell(event, **facts)

    # ------------------------------------------------------------------------------------------ in the recorded form

    def _note_choose(self, node: Node | None, round: int) -> None:
        self._tell("choose", node=self._name(node.id) if node else None, round=round)

    def _note_tree(self, after: str, tree: Tree) -> None:
        rows = [self._row(node) for node in tree.nodes]
        if rows != self._rows:
            self._rows = rows
            self._tell("tree", after=after, nodes=sorted(rows, key=json.dumps))

    def _note_cycle_end(self, cycle: Cycle, stop: str) -> None:
        told: Event = {"node": self._name(cycle.node.id), "attempts": cycle.attempts, "stop": stop}
        told |= {"stall": cycle.stall, "below": cycle.below, "parent_score": cycle.bar, "best": None}
        if cycle.best is not None:
            told |= {"best": cycle.best.program.id, "best_round": cycle.best.round, "best_score": cycle.best_score}
        self._tell("cycle_end", **told)

    def _note_attach(self, node: str, attempt: Attempt) -> None:
        told = {"node": self._name(node), "code": attempt.program.id, "round": attempt.round}
        self._tell("attach", **told, score=attempt.outcome.points)

    def _note_edit(self, report: Report) -> None:
        self._tell("edit", **report.applied, **({"skipped": report.skipped} if report.skipped else {}))

    def _note_verdict(self, of: str, ok: bool, errors: list[str]) -> None:
        self._tell("verdict", of=of, ok=ok, **({"errors": sorted(errors)} if errors else {}))

    def _note_generic_child(self, by: str, parent: str) -> None:
        self._tell("generic_child", by=by, parent=self._name(parent))

    def _tell(self, event: str, **facts: Any) -> None:
        self.events.append({"ev": event, **facts})

    def _row(self, node: Node) -> list[Any]:
        state = "closed" if node.closed else "open" if node.open else "plain"
        parent = self._name(node.parent) if node.parent is not None else None
        action = node.action
        return [self._name(node.id), parent, state, action.difficulty, action.score, node.rating, node.solution.id]

    def _name(self, identity: str) -> str:
        if not identity.startswith(MADE_HERE):
            return identity
        return self._names.setdefault(identity, f"gen{len(self._names) + 1}")

    def _filled(self, value: Any) -> Any:
        """Scripted JSON with our ids in place of its @names."""
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not (isinstance(value, str) and value.startswith("@")):
            return value
        ours = {given: made for made, given in self._names.items()}
        return ours.get(value[1:], "no-such-solution" if value == "@nowhere" else value[1:])


def play(scenario: Scenario, rules: Rules | None = None) -> Stage:
    """Run a scenario; `rules` other than the faithful ones keep the scenario's difficulty limit."""
    settings = scenario["settings"]
    stage = Stage(scenario)
    rules = rules or Rules(max_difficulty=4 if settings["max_difficulty"] is None else settings["max_difficulty"])
    seed = None
    if settings["seed"] is not None:
        code = settings["seed"]["code"]
        seed = Attempt(Program(code, code), outcome_of(settings["seed"]["eval"]))
        stage.events.append({"ev": "seed_eval", "code": code})
    result: Event = {"ev": "result", "code": None}
    try:
        found = Search(stage, rules, settings["K"], seed, settings["max_rounds"]).run()
    except CallFailed as failure:
        result["error"] = "unusable_code_reply" if isinstance(failure, UnusableReplies) else "llm_failure"
    else:
        result |= {"code": found.program.id} if found is not None else {"error": "no_solution"}
    stage.events.append(result)
    return stage


def expected(scenario: Scenario) -> list[Event]:
    """The recorded events, rows and errors in the order `Stage` writes them."""
    events = []
    for event in scenario["expected"]:
        event = dict(event)
        if event["ev"] == "tree":
            event["nodes"] = sorted(event["nodes"], key=json.dumps)
        if "errors" in event:
            event["errors"] = sorted(event["errors"])
        events.append(event)
    return events
