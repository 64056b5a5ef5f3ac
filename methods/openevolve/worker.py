"""Our side within OpenEvolve's workers: the way through the door, who is whose parent, and what a refusal means."""

from __future__ import annotations

import functools
import os
import re
import time
from pathlib import Path
from typing import Any, NoReturn

from openevolve import process_parallel

from suite.client import GatewayBench
from suite.types import Candidate, SourceFile

STOCK = process_parallel._run_iteration_worker

REFUSAL = "DERBY_OPENEVOLVE_REFUSAL"
"""Environment variable with the path of the file that tells the supervisor of a refusal."""

PARENT = "DERBY_OPENEVOLVE_PARENT"
NOTE = "DERBY_OPENEVOLVE_NOTE"
"""Environment variables of a worker: what is being made, for the thread of it that has it judged."""

_REFUSED = re.compile(r"LLM generation failed: (Error code: (401|402|5\d\d)\b|Connection error)")


def run_iteration(number: int, snapshot: dict[str, Any], parent: str, inspirations: list[str]) -> Any:
    """What a worker runs instead of the package's function: the same, its parent noted, refusals heeded."""
    code = snapshot["programs"][parent]["code"]
    os.environ[PARENT] = candidate(code).id
    os.environ[NOTE] = f"iteration {number}, island {snapshot.get('sampling_island')}"
    result = STOCK(number, snapshot, parent, inspirations)
    if result.error and is_refusal(result.error):
        park(result.error)
    return result


def is_refusal(error: str) -> bool:
    """Whether an iteration's error says that the gateway answers no more, rather than that this prompt was no good."""
    return _REFUSED.match(error) is not None


def park(why: str) -> NoReturn:
    """Tell the supervisor that the run is over and wait to be ended, so that nothing bogus enters the database."""
    Path(os.environ[REFUSAL]).write_text(why, encoding="utf-8", errors="replace")
    while True:
        time.sleep(3600)


def bench() -> GatewayBench:
    """This process's own way through the door: a connection must not be shared with the process that forked it."""
    return _bench(os.getpid())


@functools.cache
def _bench(process: int) -> GatewayBench:
    return GatewayBench.from_environment()


def candidate(text: str) -> Candidate:
    """The starter with another text in its entry file."""
    starter = bench().starter
    path = starter.spec.entry_point.split("::")[0]
    sources = (SourceFile(path=path, content=text) if one.path == path else one for one in starter.sources)
    return Candidate(spec=starter.spec, sources=tuple(sources))
