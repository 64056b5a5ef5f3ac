"""A judge that makes its verdicts up, where only placement is tested: picklable, as the cluster needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from suite.evaluator import Evaluator
from suite.scripted import ScriptedEvaluator


@dataclass(frozen=True)
class ScriptedJudge:
    """Makes an evaluator whose every verdict takes `seconds`."""

    seconds: float = 0.0

    @contextmanager
    def __call__(self, cores: tuple[int, ...]) -> Iterator[Evaluator]:
        yield ScriptedEvaluator(self.seconds)
