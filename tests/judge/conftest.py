"""One judge for all tests of this folder, on a small task, with plans whose numbers are worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suite.judge.judge import Judge
from suite.judge.plan import TINY, JudgeSettings
from suite.task import load
from suite.types import Task

FIXTURE = Path(__file__).parents[1] / "fixtures" / "scaled_add"


@pytest.fixture(scope="session")
def task() -> Task:
    return load(FIXTURE)


@pytest.fixture(scope="session")
def judge(fresh_cache: Callable[[], Path]) -> Iterator[Judge]:
    champion = TINY.model_copy(update={"launches": 3, "seconds": 0.06})
    settings = JudgeSettings(cache=fresh_cache(), search=TINY, champion=champion)
    with Judge(settings) as judge:
        yield judge
