"""The search's ports on a workbench: questions become prompts, answers candidates, verdicts outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from methods.ksearch.code_prompts import code_prompt
from methods.ksearch.formats import Format
from methods.ksearch.normalise import json_of
from methods.ksearch.ports import CallFailed, CodeQuestion, WorldQuestion
from methods.ksearch.prompts import Setting, world_prompt
from methods.ksearch.tree import Attempt, Node, Outcome, Program, Tree
from suite.events import Message
from suite.types import Candidate, Prediction
from suite.workbench import Feedback, Workbench

REFUSED = "refused"
WORLD_MODEL = "world_model.json"


@dataclass
class BenchPorts:
    """`Ports` of one trial. Keeps the candidates it has read, by id."""

    bench: Workbench
    setting: Setting
    format: Format
    candidates: dict[str, Candidate] = field(default_factory=dict)

    def plan(self, question: WorldQuestion) -> str:
        return self._ask(world_prompt(question, self.setting))

    def write(self, question: CodeQuestion) -> Program | None:
        text = self._ask(code_prompt(question, self.setting, self.format))
        candidate = self.format.read(text, self.bench.starter)
        return None if candidate is None else self.known(candidate)

    def judge(self, program: Program, question: CodeQuestion) -> Outcome:
        source, node = question.last or question.base, question.node
        feedback = self.bench.evaluate(
            self.candidates[program.id],
            parent=source.program.id if source is not None else None,
            note=f"{question.kind}, node {node.id}: {node.action.title}",
            predicted=predicted(node),
        )
        return outcome_of(feedback)

    def note(self, event: str, **facts: object) -> None:
        """Keeps the tree for whoever looks; a trial that is resumed gets it back from its ledger."""
        tree = facts.get("tree")
        if isinstance(tree, Tree):
            path = self.bench.folder / WORLD_MODEL
            drawn = {"root_id": tree.root, "active_leaf_id": tree.active, "nodes": [json_of(one) for one in tree.nodes]}
            whole = {"kernel_summary": tree.summary, "open_questions": list(tree.questions), "decision_tree": drawn}
            path.write_text(json.dumps(whole, indent=1), encoding="utf-8")

    def known(self, candidate: Candidate) -> Program:
        """The candidate as a program of the search."""
        self.candidates[candidate.id] = candidate
        return Program(candidate.id, self.format.show(candidate))

    def seed(self) -> Attempt | None:
        """The starter with its verdict."""
        history = self.bench.history()
        return Attempt(self.known(self.bench.starter), outcome_of(history[0])) if history else None

    def _ask(self, prompt: str) -> str:
        reply = self.bench.chat([Message(role="user", content=prompt)])
        if reply.finish_reason == REFUSED:
            raise CallFailed("the model refused the prompt")
        return reply.text


def predicted(node: Node) -> Prediction:
    """What the tree expected of the action that is worked on."""
    return Prediction(speedup=node.action.expected, value=node.action.score)


def outcome_of(feedback: Feedback) -> Outcome:
    """A verdict in the search's terms; latency is the plain mean over workloads."""
    if not feedback.passed:
        return Outcome(False, status=feedback.status.value.lower(), log=_log(feedback))
    times = [one.candidate_us for one in feedback.workloads]
    latency = sum(times) / len(times) / 1000 if times else None
    score = feedback.score
    return Outcome(True, score, score, score, latency, "passed")


def targets(starter: Feedback | None) -> str:
    """The baseline's time on each workload, as measured beside the starter."""
    lines = []
    for one in starter.workloads if starter is not None else ():
        axes = ", ".join(f"{name}={value}" for name, value in one.axes.items())
        lines.append(f"{one.uuid}: target_latency_ms <= {one.baseline_us / 1000:.4g} ({axes})")
    return "\n".join(lines)


def _log(feedback: Feedback) -> str:
    """Where it failed, why, and what the compiler said."""
    failure = feedback.failure
    if failure is None:
        return feedback.log
    where = f" on workload {failure.workload}" if failure.workload else ""
    return f"{feedback.status} in stage {failure.stage}{where}: {failure.detail}\n{feedback.log}".strip()
