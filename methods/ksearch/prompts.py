"""The questions to the model as world model: a first tree, and edit scripts for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from methods.ksearch import views
from methods.ksearch.ports import WorldQuestion
from methods.ksearch.rules import Rules
from methods.ksearch.tree import Attempt, Node, Tree

MARK = "[K-Search world model: {}]"
"""First line of every such question, with its kind; the stand-in planner knows them by it."""
BRIEF_CHARS = 50_000
VIEW_CHARS, STATUS_CHARS, FRONTIER_CHARS, PATH_CHARS = 2600, 900, 1200, 800
ACTION_CHARS, JSON_CHARS, TARGET_CHARS, LOG_CHARS = 500, 800, 900, 400

SCHEMA = """\
{"kernel_summary": str, "open_questions": [str, 3 to 8 of them],
 "decision_tree": {"root_id": "root", "active_leaf_id": str, "nodes": [NODE, ...]}}
NODE = {"node_id": str, "parent_id": str (null for the root only), "decision": str, "choice": str (null in the root),
 "overall_rating_0_to_10": how good the partial plan up to here is, "confidence_0_to_1": number,
 "impacts": {"memory_bandwidth" | "register_pressure" | "compute_intensity_and_hw_fit":
   {"rating_0_to_10": number, "risk": str, "notes": str}},
 "notes": str, "action": {"title": str, "description": str, "difficulty_1_to_5": int, "score_0_to_1": its value V,
   "expected_vs_baseline_factor": speedup over the baseline you expect, "rationale": str}}"""

INIT = """\
{mark}
You keep the world model of a search for a fast kernel, written in {language}: a tree of plans whose actions are tried
one by one, each value V telling how promising an action is.

# The task
{brief}
{seed}
# Before you answer
Analyse deeply, but put out nothing except the JSON. Work through: (1) what class of kernel this is; (2) the mathematics
in canonical form and what depends on what; (3) data layout and access patterns; (4) at least three regimes with their
bottlenecks; (5) the design's knobs; (6) the skeleton of a good kernel; (7) two or three families of kernels. What you
find goes into kernel_summary, open_questions and the root's notes.

# Rules
- The root is a dummy. Nodes below it are families of kernels, named after their structure, never after a tactic.
- The tree is a prefix tree: a child refines its parent; siblings exclude each other, and say so in their notes
  (SELF_CHECK: why both can not hold).
- At least three open action nodes, each small enough to be done in one iteration.
- Fill in every number. In doubt, score_0_to_1 is overall_rating_0_to_10 / 10.

# Answer
One JSON object of this form, nothing around it:
{schema}
"""

EDIT = """\
{mark}
You keep the world model of a search for a fast kernel, written in {language}: a tree of plans whose actions are tried
one by one. Revise it by an edit script.

# The task, in short
{brief}

# The tree, in short
{view}

# Status
{status}

# Nodes that can be worked on
{frontier}

# Path
{path}
{targets}
# What happened
{evidence}

# The current kernel
{code}

# Reflect in the notes of the nodes you touch
CURRENT: what the kernel does and what bounds it. FOLLOW_THROUGH: whether it did what the action meant.
UPDATE_BELIEF: what this teaches about the other actions. PERF_GAP: why prediction and observation differ, if they do.

# Rules
- Numbers must follow the evidence: revise score_0_to_1, expected_vs_baseline_factor, ratings and confidence, of other
  nodes too. An action that failed for a reason that stands loses value.
- Insert at most three nodes. A child goes on from its parent's program by one small step; an alternative is a sibling
  that excludes the others; a new family goes under the root.
- Solved nodes and the root's decision stay as they are.{deletion}

# Answer
One JSON object, nothing around it:
{{"active_leaf_id": optional str, "ops": [
  {{"op": "update_node", "node_id": str, "patch": {{fields of a node that change}}}},
  {{"op": "insert_node", "parent_id": str, "parent_solution_id": str or null, "node": NODE}},
  {{"op": "split_node", "node_id": str, "parent_patch": {{...}}, "children": [NODE, ...]}}{delete_op}]}}
NODE as in the tree: node_id, decision, choice, overall_rating_0_to_10, confidence_0_to_1, impacts, notes, action
{{title, description, difficulty_1_to_5, score_0_to_1, expected_vs_baseline_factor, rationale}}.
"""

DELETION = "\n- What is disproved may be deleted (delete_node), if it is a leaf without a program."
DELETE_OP = ',\n  {"op": "delete_node", "node_id": str}'


@dataclass(frozen=True)
class Setting:
    """What does not change during a search: the task in words, the language, each workload's time to beat."""

    brief: str
    language: str
    targets: str = ""
    rules: Rules = field(default_factory=Rules)


def world_prompt(question: WorldQuestion, setting: Setting) -> str:
    """The prompt of a question."""
    return _init(question, setting) if question.kind == "init" else _edit(question, setting)


def fence(text: str, info: str = "") -> str:
    """A fenced block around any text, fences within it included."""
    marks = "```"
    while marks in text:
        marks += "`"
    body = text if text.endswith("\n") else f"{text}\n"
    return f"{marks}{info}\n{body}{marks}"


def _init(question: WorldQuestion, setting: Setting) -> str:
    seed = ""
    if question.shown is not None:
        seed = f"\n# The kernel to start from\n{views.performance('It', question.shown)}\n{_code(question.shown)}\n"
    return INIT.format(
        mark=MARK.format("init"),
        language=setting.language,
        brief=views.cut(setting.brief.rstrip(), BRIEF_CHARS),
        seed=seed,
        schema=SCHEMA,
    )


def _edit(question: WorldQuestion, setting: Setting) -> str:
    tree, rules = question.tree, setting.rules
    assert tree is not None, "only the first question comes without a tree"
    shown = setting.targets if question.kind != "refine" else ""
    return EDIT.format(
        mark=MARK.format(question.kind),
        language=setting.language,
        brief=views.compact_brief(setting.brief),
        view=views.cut(views.compact(tree, question.shown), VIEW_CHARS),
        status=views.cut(_status(question, tree), STATUS_CHARS),
        frontier=views.frontier(tree, rules.show_whole_frontier, FRONTIER_CHARS) or "(none)",
        path=views.path(tree, question.node, PATH_CHARS),
        targets=f"\n# Times to beat\n{views.cut(shown, TARGET_CHARS)}\n" if shown else "",
        evidence=_evidence(question, rules),
        code=_code(question.shown),
        deletion=DELETION,
        delete_op=DELETE_OP if rules.show_delete_op else "",
    )


def _status(question: WorldQuestion, tree: Tree) -> str:
    best = tree.best()
    known = "best_node_id=(none yet)" if best is None else f"best_node_id={best.id}"
    match question.kind:
        case "propose":
            child = " and one of them under the best node" if best and not tree.open_children(best.id) else ""
            return f"{known}. Needed: at least one node that can be worked on with score_0_to_1 > 0.5{child}."
        case "refine":
            return (
                f"{known}. The action below passed. Needed: at least one easy action (difficulty < 5) under its node."
            )
        case _:
            return f"{known}. The action below failed in every attempt. Judge whether it is too hard, and what to do."


def _evidence(question: WorldQuestion, rules: Rules) -> str:
    rejected = "The last edit script was rejected: " + ", ".join(question.errors) if question.errors else ""
    lines = []
    if question.node is not None:
        lines += _of_node(question.node, "" if rules.show_retry_errors else rejected)
    if question.shown is not None:
        lines.append("Observed: " + views.cut(views.dumped(_observed(question.shown)), JSON_CHARS))
        lines.append(f"Attempt of round {question.shown.round}.")
    if rejected and (rules.show_retry_errors or question.node is None):
        lines.append(rejected)
    return "\n".join(lines) or "(nothing yet)"


def _observed(attempt: Attempt) -> dict[str, object]:
    outcome = attempt.outcome
    return views.observed(outcome) | ({} if outcome.passed else {"log": outcome.log[:LOG_CHARS]})


def _of_node(node: Node, appended: str) -> list[str]:
    """Action and prediction; what is appended to the action shares its cut, as in the original."""
    told = views.dumped(views.action(node)) + (f" {appended}" if appended else "")
    return [
        "Chosen action: " + views.cut(told, ACTION_CHARS),
        "Predicted: " + views.cut(views.dumped(views.prediction(node)), JSON_CHARS),
    ]


def _code(attempt: Attempt | None) -> str:
    return attempt.program.text if attempt is not None else "(none yet)"
