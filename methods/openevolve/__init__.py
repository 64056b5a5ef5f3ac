"""OpenEvolve 0.4.1, the package as it is on PyPI, behind the one door. Loads nothing of it: its process does."""

from __future__ import annotations

import importlib.util
import multiprocessing
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from methods.openevolve import settings, supervisor
from suite.errors import MethodError
from suite.workbench import Workbench

if importlib.util.find_spec("openevolve") is None:
    raise ModuleNotFoundError("No module named 'openevolve'", name="openevolve")

VERSION = "0.4.1"

Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class OpenEvolve:
    """Evolution on islands, each a MAP-Elites grid: the PyPI package openevolve 0.4.1, unmodified.

    Source: https://github.com/algorithmicsuperintelligence/openevolve, after AlphaEvolve (arXiv:2506.13131). The preset
    "core" takes the package's own defaults for database, prompt and edits; "k_search_paper" takes the values of
    K-Search's baseline (github.com/caoshiyi/K-Search, baselines/openevolve): 3 islands, 25 programs, archive of 12,
    elite / exploitation / exploration 0.3 / 0.65 / 0.35, whole files instead of edits; score, sampling and length of a
    run, which that baseline sets too, are the race's.

    The race's: the brief is the system message, the starter the initial program (evaluation 0, free), sampling and
    retries are the gateway's (`retries` 0, no cascade, no timeout of its own, and what the package asks for as
    temperature or length is not heeded), fitness is the score (a failure 0), artifacts are what every method may know
    of a verdict.

    Deviations from the package's defaults, in both presets: the hint to simplify what exceeds 500 characters and the
    redaction of long words are off (both misread kernels), every program's artifacts go to the workers instead of the
    100 oldest programs', programs may have `max_code_length` characters instead of 10000, prompts are not kept in
    checkpoints, nothing ends a run but a budget or `give_up_after`. So that one worker gives the same run again,
    `uuid.uuid4` and the dice of forked workers are seeded. The function a worker runs is wrapped to note each
    candidate's parent in the ledger and to halt when the gateway refuses.

    With `concurrency` above 1 the order in which verdicts come is chance: seeds are replicate labels there. A runner
    that dies within a life goes on from its newest sound checkpoint; a trial that is resumed replays the ledger, and
    after such a death on another path than before.
    """

    preset: Literal["core", "k_search_paper"] = "core"
    edits: Literal["search_replace", "whole"] | None = None
    """How the model is to answer; None: as the preset says (core: search_replace, k_search_paper: whole)."""
    islands: Count | None = None
    """None: as the preset says (5, 3)."""
    population: Count | None = None
    """Programs kept; None: as the preset says (1000, 25)."""
    max_code_length: Count = 90_000
    """Characters; a longer child is a failed iteration."""
    give_up_after: Count = 20
    """Iterations in a row that bring no candidate, after which asking on is a waste of tokens."""

    uses_model: ClassVar[bool] = True

    def search(self, bench: Workbench) -> None:
        """Runs until a budget is spent. Raises `MethodError` for another version, or if the package keeps dying."""
        installed = metadata.version("openevolve")
        if installed != VERSION:
            raise MethodError(
                f"openevolve {installed} is installed",
                f"openevolve {VERSION}, the version this method is",
                "pip install 'kernel-derby[openevolve]'",
            )
        if len(bench.starter.text()) > self.max_code_length:
            raise MethodError(
                f"the starter has {len(bench.starter.text())} characters, max_code_length is {self.max_code_length}",
                "room for the starter and what grows out of it",
                "raise max_code_length on the race card",
            )
        _need_semaphores()
        supervisor.supervise(settings.lay_out(self, bench), bench.seed)


def _need_semaphores() -> None:
    """Raises `MethodError` where the walls around a method leave it no shared memory of its own."""
    try:
        multiprocessing.Lock()
    except OSError as refusal:
        raise MethodError(
            f"OpenEvolve's workers need semaphores, and a method gets none here: {refusal}",
            "a system that gives a method a /dev/shm of its own, which takes namespaces",
            "allow this user namespaces, or race another method",
        ) from None
