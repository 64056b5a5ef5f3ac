"""Lets any registered method search in this process, through the door, in the made-up task of tests/methods."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from methods import METHODS, resolve
from suite.bench import TrialBench
from suite.errors import BudgetExhausted
from suite.evaluator import Evaluator
from suite.events import ModelCalled
from suite.ledger import read
from suite.types import Budget, Candidate
from suite.workbench import Model
from tests.conformance.racer import BUDGET
from tests.methods.course import bench, door, order, verdicts

HEAVY = frozenset({"openevolve"})
"""Methods that start processes of their own, which takes seconds: their searches belong to the slow tests."""


def _each(names: list[str]) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in HEAVY else name for name in names]


EVERY = pytest.mark.parametrize("name", _each(list(METHODS)))
ASKING = pytest.mark.parametrize("name", _each([name for name in METHODS if resolve(name, {}).uses_model]))


def answered(texts: Mapping[str, str]) -> pytest.MarkDecorator:
    """Parameters `name` and `texts` of methods that ask: all texts in turn, and each alone where that is quick."""
    asking = [name for name in METHODS if resolve(name, {}).uses_model]
    light = [
        pytest.param(name, [text], id=f"{name}-{word}", marks=pytest.mark.slow)
        for name in asking
        for word, text in texts.items()
        if name not in HEAVY
    ]
    mixed = [
        pytest.param(name, list(texts.values()), id=f"{name}-all", marks=[pytest.mark.slow] if name in HEAVY else [])
        for name in asking
    ]
    return pytest.mark.parametrize(("name", "texts"), light + mixed)


def search(
    folder: Path,
    name: str,
    evaluator: Evaluator,
    model: Model,
    budget: Budget = BUDGET,
    concurrency: int = 1,
) -> TrialBench:
    """Let the method search until it ends of itself or its budget is spent."""
    spec = resolve(name, {})
    module, _, attribute = spec.target.partition(":")
    method = getattr(sys.modules[module], attribute)(**spec.options)
    trial = order(folder, spec, budget, concurrency=concurrency)
    with bench(trial, evaluator, model) as opened, door(opened) as client:
        with suppress(BudgetExhausted):
            method.search(client)
        return opened


def proposed(folder: Path) -> list[Candidate]:
    """What was judged in a trial's folder, the starter left out."""
    return [event.candidate for event in verdicts(folder)]


def calls(folder: Path) -> list[ModelCalled]:
    """The model calls recorded in a trial's folder."""
    return [entry.event for entry in read(folder / "ledger.jsonl") if isinstance(entry.event, ModelCalled)]
