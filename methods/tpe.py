"""What tuning alone reaches: Optuna's TPE over the starter's `tune:` values. Asks no model."""

from __future__ import annotations

import itertools
import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import TrialState

from suite.errors import MethodError
from suite.tunables import Tunable, find, render
from suite.types import Candidate, SourceFile
from suite.workbench import Feedback, Workbench

Setting = tuple[str, ...]
"""One value for each tunable, in the order of the source."""


@dataclass(frozen=True)
class Tpe:
    """Tree-structured Parzen estimator over the starter's tunables, all taken as categories."""

    startup: int = 6
    """Settings drawn at random before the estimator is asked."""
    patience: int = 20
    """Settings already known that the sampler may propose in a row; then an unknown one is drawn at random."""

    uses_model: ClassVar[bool] = False

    def search(self, bench: Workbench) -> None:
        """Tries settings until the budget is spent or there are no others. Raises `MethodError` without tunables."""
        tunables = find(bench.starter.text())
        if not tunables:
            raise MethodError(
                "tpe turns the dials of a starter's `tune:` comments, and this starter has none",
                "a starter with lines such as `constexpr int kBlock = 4;  // tune: block in {2, 4, 8}`",
                "race tpe on a task or language whose starter has tunables",
            )
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # of this process, which is ours alone
        course = _Course(tunables, self.patience, bench.seed, self._study(bench.seed))
        course.learn(course.current(), bench.history()[0].score if bench.history() else 0.0)
        with ThreadPoolExecutor(bench.concurrency) as pool:
            while batch := course.propose(bench.concurrency):
                # map keeps the order, so that the sampler learns the same things in the same order at any speed
                verdicts = pool.map(lambda setting: _judge(bench, tunables, setting), [setting for _, setting in batch])
                for (number, _), verdict in zip(batch, verdicts, strict=True):
                    course.told(number, verdict.score)

    def _study(self, seed: int) -> optuna.Study:
        sampler = optuna.samplers.TPESampler(n_startup_trials=self.startup, seed=seed)
        return optuna.create_study(direction="maximize", sampler=sampler)


def _judge(bench: Workbench, tunables: tuple[Tunable, ...], setting: Setting) -> Feedback:
    starter = bench.starter
    values = {dial.name: value for dial, value in zip(tunables, setting, strict=True)}
    path = starter.spec.entry_point.split("::")[0]
    content = render(starter.text(path), values)
    sources = tuple(SourceFile(path=path, content=content) if one.path == path else one for one in starter.sources)
    note = ", ".join(f"{name}={value}" for name, value in values.items())
    return bench.evaluate(Candidate(spec=starter.spec, sources=sources), parent=starter.id, note=note)


@dataclass
class _Course:
    """The settings tried so far, and the study that proposes the next ones."""

    tunables: tuple[Tunable, ...]
    patience: int
    seed: int
    study: optuna.Study
    known: set[Setting] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.space: dict[str, BaseDistribution] = {
            dial.name: CategoricalDistribution(dial.values) for dial in self.tunables
        }
        self.size = math.prod(len(dial.values) for dial in self.tunables)
        self.dice = random.Random(self.seed)

    def current(self) -> Setting:
        return tuple(dial.current for dial in self.tunables)

    def learn(self, setting: Setting, score: float) -> None:
        """Tell the study of a setting it did not propose."""
        self.known.add(setting)
        params = dict(zip(self.space, setting, strict=True))
        self.study.add_trial(optuna.trial.create_trial(params=params, distributions=self.space, value=score))

    def told(self, number: int, score: float) -> None:
        self.study.tell(number, score)

    def propose(self, count: int) -> list[tuple[int, Setting]]:
        """Up to `count` new settings with the study's numbers for them; none when all have been tried."""
        proposed: list[tuple[int, Setting]] = []
        while len(proposed) < count and len(self.known) < self.size:
            number, setting = self._new()
            self.known.add(setting)
            proposed.append((number, setting))
        return proposed

    def _new(self) -> tuple[int, Setting]:
        for _ in range(self.patience):
            trial = self.study.ask(self.space)
            setting = tuple(str(trial.params[name]) for name in self.space)
            if setting not in self.known:
                return trial.number, setting
            # Not told as a result: the same verdict counted many times would hold the sampler where it is.
            self.study.tell(trial.number, state=TrialState.FAIL)
        setting = self._unknown()
        self.study.enqueue_trial(dict(zip(self.space, setting, strict=True)))
        return self.study.ask(self.space).number, setting

    def _unknown(self) -> Setting:
        """A setting not tried yet, by chance while most are unknown, by listing when few are."""
        for _ in range(100):
            setting = tuple(self.dice.choice(dial.values) for dial in self.tunables)
            if setting not in self.known:
                return setting
        every = itertools.product(*(dial.values for dial in self.tunables))
        return next(setting for setting in every if setting not in self.known)
