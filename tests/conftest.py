"""What tests of several folders share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from suite.judge.build import Builder
from suite.types import Candidate, Language, SourceFile, Spec


@pytest.fixture(scope="session")
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes caches for builds that hold the compiled standard headers (4 s, once for all workers) and nothing else."""
    base = tmp_path_factory.getbasetemp()
    headers = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "headers"
    for text in ("int nothing;\n", "std::atomic<int> nothing;\n"):  # the two sets of headers
        Builder(headers).build(
            Candidate(
                spec=Spec(language=Language.CPP, entry_point="kernel.cpp::run"),
                sources=(SourceFile(path="kernel.cpp", content=text),),
            )
        )

    def make() -> Path:
        cache = tmp_path_factory.mktemp("cache")
        for prelude in headers.glob("prelude-*"):
            shutil.copytree(prelude, cache / prelude.name, copy_function=os.link)
        return cache

    return make
