"""What the tests of single tasks share; each module says in `NAME` which task it is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import tasks
from suite.judge.build import Builder
from suite.task import load, module
from suite.types import Task


@pytest.fixture(scope="module")
def task(request: pytest.FixtureRequest) -> Task:
    return load(tasks.folder(request.module.NAME))


@pytest.fixture(scope="module")
def inputs(task: Task) -> ModuleType:
    return module(task, "inputs")


@pytest.fixture(scope="module")
def builder(fresh_cache: Callable[[], Path]) -> Builder:
    return Builder(fresh_cache())
