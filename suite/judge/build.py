"""Turns a candidate's sources into what a child loads: compiled in a sandbox, kept by content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from suite.types import Candidate


class BuildFailed(Exception):
    """The candidate does not build; `log` is what the compiler said (at most 64 KiB)."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


@dataclass(frozen=True)
class Artifact:
    """What a child loads: a shared library (cpp) or a folder of sources (python)."""

    path: Path
    log: str
    seconds: float
    cached: bool


class Builder:
    """Builds candidates into the folder `cache`; may be shared by processes."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def build(self, candidate: Candidate, abi: str = "") -> Artifact:
        """`abi`: declarations the C++ entry file is compiled after, so that a wrong prototype is a compile error.

        Raises `BuildFailed`; `UserError` when there is no compiler.
        """
        raise NotImplementedError
