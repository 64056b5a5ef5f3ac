"""Makes judges for this machine: the one place that turns a card's timing and a set of cores into a judge."""

from __future__ import annotations

import importlib
import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ray_cluster.console import MissingEnvironment
from suite.evaluator import Evaluator
from suite.judge.build import Builder
from suite.judge.plan import JudgeSettings, Timing

CACHE = "DERBY_CACHE"
"""Environment variable naming the folder of built kernels."""


@dataclass(frozen=True)
class LocalJudge:
    """A maker of judges, picklable: called in the process that will judge, with the cores to be owned."""

    timing: Timing = "standard"

    def __call__(self, cores: tuple[int, ...]) -> AbstractContextManager[Evaluator]:
        settings = JudgeSettings(cpus=cores, cache=cache()).timed(self.timing)
        # A driver names the judge and never runs it: torch would cost it seconds and 300 MB.
        judge: AbstractContextManager[Evaluator] = importlib.import_module("suite.judge.judge").Judge(settings)
        return judge


def cache() -> Path:
    """Where built kernels are kept, by content."""
    folder = os.environ.get(CACHE)
    return Path(folder).absolute() if folder else JudgeSettings(cpus=(0,)).cache


def builder() -> Builder:
    return Builder(cache())


def need_compiler() -> None:
    """Raises `MissingEnvironment` where there is no g++: every baseline of the cpu lane is built by it."""
    if shutil.which("g++") is None:
        raise MissingEnvironment(
            "there is no g++ on this machine",
            "a C++20 compiler with OpenMP: kernels of the cpu lane are built here",
            "install it: sudo apt-get install g++ (Fedora: sudo dnf install gcc-c++)",
        )
