"""K-Search: a tree of intents that the model itself keeps and revises, worked on one action at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from methods.ksearch.adapter import BenchPorts, targets
from methods.ksearch.formats import format_for
from methods.ksearch.ports import CallFailed
from methods.ksearch.prompts import Setting
from methods.ksearch.rules import Rules
from methods.ksearch.search import Search
from suite.types import Language
from suite.workbench import Workbench

PATIENCE = {Language.CPP: 7, Language.CUDA: 7, Language.TRITON: 5, Language.PYTHON: 5}
"""K of the paper: 7 for CUDA, 5 for Triton."""


@dataclass(frozen=True)
class KSearch(Rules):
    """K-Search (arXiv 2602.19128): a world model of plans, co-evolved with the kernels by one and the same model.

    The starter is the seed that closes the root. Other than the original, and the same for every method here: content
    comes from the brief alone (no hints of its own), the score is the suite's (a geometric mean, not an arithmetic
    one), and the gateway ends the search. In every language an answer without a kernel is asked for again, as the
    original does for CUDA only.
    """

    stagnation: Annotated[int, Field(ge=0)] = 0
    """K: attempts without progress that end a cycle; 0 is 7 for C++ and CUDA, 5 for Triton and Python."""
    one_file_cuda: bool = False
    """CUDA answers as one fenced file instead of three tagged ones."""

    uses_model: ClassVar[bool] = True

    def search(self, bench: Workbench) -> None:
        """Searches until the budget is spent, nothing is left to do, or the model's answers are of no use."""
        history = bench.history()
        setting = Setting(bench.brief, bench.language.value, targets(history[0] if history else None), self)
        ports = BenchPorts(bench, setting, format_for(bench.language, self.one_file_cuda))
        patience = self.stagnation or PATIENCE[bench.language]
        try:
            Search(ports, self, patience, ports.seed()).run()
        except CallFailed as end:
            sys.stderr.write(f"K-Search ends: {end}\n")
