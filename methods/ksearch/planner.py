"""The stand-in for a model as world model: plans settings of a kernel's `tune:` dials, where there is no model at all.

It answers K-Search's planning questions in races without a model, and carries out the settings it planned; all other
kernels are the tuner's. Its predictions are simple and meant: a step is hoped to gain a little over the program it
starts from, less so the more the last prediction was missed, and what is still open is revised by the same miss.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from suite.errors import TaskError
from suite.events import Message
from suite.fences import Block, fenced
from suite.tunables import Tunable, find, render

HOPE = 0.1
"""What a step is hoped to gain at first."""
PARITY = 1.0
"""What is expected before anything is known: the baseline's speed."""
NEW, VALUES = 3, (0.75, 0.7, 0.65)
"""Actions a plan adds, and their values in order."""
LOOSE = ("turn one dial", "turn two dials", "turn many dials")
"""Actions that leave it to the tuner, for when no kernel has been shown yet or every setting has been planned."""

_MARK = re.compile(r"\A\[K-Search (?:world model|code): (init|propose|refine|too_hard|action)\]")
_LISTED = re.compile(r"- (?P<id>\S+) \(under (?P<parent>\S+)\): ")
_BEST = re.compile(r"best_node_id=([^\s(.]\S*?)\. ")
_SPEED = re.compile(r"^It: .*vs_baseline=([\d.]+)", re.MULTILINE)
_SOLVED = re.compile(r"\bscore=([\d.]+)")
_SETTING = re.compile(r"set (\w+) = (\S+)")


@dataclass(frozen=True)
class _Open:
    """An open node as the question lists it."""

    parent: str
    value: float
    expected: float | None


@dataclass(frozen=True)
class _Scene:
    """What an edit question tells: open nodes by id, the node at issue, the shown kernel and how it went."""

    kind: str
    open: dict[str, _Open]
    node: str | None
    best: str | None
    dials: tuple[Tunable, ...]
    predicted: float | None
    observed: float | None
    fastest: float
    planned: str

    @property
    def met(self) -> float:
        """How much of the prediction came true, at most all; all if nothing was predicted."""
        if self.predicted is None or self.observed is None or self.predicted <= 0:
            return 1.0
        return min(self.observed / self.predicted, 1.0)

    @property
    def expected(self) -> float:
        """What a step from the shown kernel should reach."""
        return round((self.observed or self.fastest or PARITY) * (1 + HOPE * self.met), 4)

    @property
    def worth(self) -> float:
        """How a step from the shown kernel compares with the fastest known: building on a slow one is worth less."""
        return min(self.expected / self.fastest, 1.0) if self.fastest > 0 else 1.0


def reply(messages: Sequence[Message]) -> str | None:
    """The answer to a question of K-Search's; None for any other. A pure function."""
    prompt = messages[-1].content if messages else ""
    mark = _MARK.match(prompt)
    if mark is None:
        return None
    match mark[1]:
        case "init":
            return json.dumps(_first_tree(prompt))
        case "action":
            return _carried_out(prompt)
        case kind:
            return json.dumps({"ops": list(_edits(_scene(kind, prompt)))})


# ---------------------------------------------------------------------------------------------- plans


def _first_tree(prompt: str) -> dict[str, Any]:
    """A tree of three actions; where no kernel and no speed is shown, each is expected to reach parity."""
    shown, said = _tuned(prompt), _SPEED.search(prompt)
    dials = find(shown.text) if shown is not None else ()
    measured = _number(said[1]) if said is not None else None
    expected = PARITY if measured is None else round(measured * (1 + HOPE), 4)
    titles = list(_titles(dials, ""))[:NEW]
    nodes = [_node(title, expected, rank) for rank, title in enumerate(titles)]
    root = {"node_id": "root", "parent_id": None, "notes": "dials of a kernel, turned step by step"}
    tree = {
        "root_id": "root",
        "active_leaf_id": "root",
        "nodes": [root, *(one | {"parent_id": "root"} for one in nodes)],
    }
    questions = ["which dials matter", "which of them depend on each other", "what bounds the kernel"]
    return {"kernel_summary": "a kernel with dials", "open_questions": questions, "decision_tree": tree}


def _edits(scene: _Scene) -> Iterator[dict[str, Any]]:
    if scene.kind != "propose":
        yield from _revisions(scene)
    count = 1 if scene.kind == "too_hard" else NEW
    parent, worth = _where(scene), 1.0 if scene.kind == "propose" else scene.worth
    for rank, title in enumerate(list(_titles(scene.dials, scene.planned))[:count]):
        yield {"op": "insert_node", "parent_id": parent, "node": _node(title, scene.expected, rank, worth)}


def _where(scene: _Scene) -> str:
    """A success is built upon; after a failure its neighbour is tried, and else the best program."""
    if scene.kind == "refine" and scene.node is not None:
        return scene.node
    if scene.kind == "too_hard" and scene.node in scene.open:
        return scene.open[scene.node].parent
    return scene.best or "root"


def _revisions(scene: _Scene) -> Iterator[dict[str, Any]]:
    """What failed loses half its value; what is open is expected to miss half as much as was missed here."""
    for identity, told in scene.open.items():
        failed = scene.kind == "too_hard" and identity == scene.node
        if not failed and scene.met == 1.0:
            continue
        value = told.value * (0.5 if failed else 0.95)
        patch: dict[str, Any] = {"score_0_to_1": round(value, 4)}
        if told.expected is not None:
            patch["expected_vs_baseline_factor"] = round(told.expected * scene.met**0.5, 4)
        yield {"op": "update_node", "node_id": identity, "patch": {"action": patch}}


def _node(title: str, expected: float, rank: int, worth: float = 1.0) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", title)
    action = {
        "title": title,
        "description": "change the values of tune: comments, nothing else",
        "difficulty_1_to_5": 1,
        "score_0_to_1": round(VALUES[rank] * worth, 4),
        "expected_vs_baseline_factor": expected,
        "rationale": "one step from a kernel that works",
    }
    return {
        "node_id": name,
        "decision": "setting",
        "choice": title,
        "overall_rating_0_to_10": 6 - rank,
        "confidence_0_to_1": 0.3,
        "action": action,
    }


def _titles(dials: Sequence[Tunable], planned: str) -> Iterator[str]:
    """Settings one step away, dial by dial, then two steps, ...; those the prompt speaks of are left out."""
    for distance in range(1, max((len(dial.values) for dial in dials), default=0)):
        for dial in dials:
            here = dial.values.index(dial.current)
            for place in (here + distance, here - distance):
                title = f"set {dial.name} = {dial.values[place]}" if 0 <= place < len(dial.values) else ""
                if title and not re.search(rf"{re.escape(title)}(?![\w.])", planned):
                    yield title
    yield from LOOSE


def _carried_out(prompt: str) -> str | None:
    """The kernel with the planned setting; None leaves an action without one to the tuner."""
    title = _told(prompt.rpartition("\nChosen action: ")[2], "title") or ""
    settings, block = dict(_SETTING.findall(title)), _tuned(prompt)
    if not settings or block is None:
        return None
    try:
        after = render(block.text, settings)
    except TaskError:
        return None  # the kernel at hand has no such dial
    if after == block.text:
        return None  # it was planned from another kernel and says nothing new of this one
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", after)), default=0))
    return f"As planned: {title}.\n\n{fence}{block.info}\n{after}{fence}\n"


# ---------------------------------------------------------------------------------------------- reading a prompt


def _scene(kind: str, prompt: str) -> _Scene:
    before, _, happened = prompt.partition("\n# What happened\n")
    evidence, _, rest = happened.partition("\n# The current kernel\n")
    status, _, listed = before.partition("\n# Status\n")[2].partition("\n# Nodes that can be worked on\n")
    listed = listed.partition("\n# Path\n")[0]
    block, best = _tuned(rest), _BEST.match(status)
    chosen, _, judged = evidence.partition("Observed: ")
    passed = _told(judged, "status") == "passed"
    factor = _told(judged, "mean_vs_baseline_factor") if passed else None
    predicted = _told(chosen.partition("Predicted: ")[2], "expected_vs_baseline_factor")
    return _Scene(
        kind=kind,
        open=dict(_open(listed)),
        node=_told(chosen, "node_id"),
        best=best[1] if best is not None else None,
        dials=find(block.text) if block is not None else (),
        predicted=_number(predicted),
        observed=_number(factor),
        fastest=max((_number(score) or 0.0 for score in _SOLVED.findall(before)), default=0.0),
        planned=before,
    )


def _open(listed: str) -> Iterator[tuple[str, _Open]]:
    """The nodes of a list; a line that is cut or says no number is passed over.

    Without a pattern for the whole line: titles and notes are free text, over which one can take for ever.
    """
    for line in listed.split("\n"):
        named = _LISTED.match(line)
        facts, _, rest = line.rpartition(" [V=")[2].partition("]")
        value, expected = _number(facts.partition(",")[0]), facts.partition("expected=")[2].partition(",")[0]
        if named is not None and value is not None and expected and (rest or line.endswith("]")):
            yield named["id"], _Open(named["parent"], value, _number(expected))


def _number(text: str | None) -> float | None:
    """The number a text spells; prompts may be anybody's, and say what is none."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _told(text: str, key: str) -> str | None:
    """The first string or number that stands behind a key of JSON, which may have been cut."""
    found = re.search(rf'"{key}": (?:"((?:[^"\\]|\\.)*)"|(-?[\d.]+(?:e-?\d+)?))', text)
    return None if found is None else found[1] if found[1] is not None else found[2]


def _tuned(text: str) -> Block | None:
    """The last code block with dials."""
    for block in reversed(fenced(text)):
        try:
            if find(block.text):
                return block
        except TaskError:
            continue
    return None
