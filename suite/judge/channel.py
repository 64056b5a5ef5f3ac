"""What the judge and a candidate's process say to each other: the nouns, without the machinery (zygote.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suite.types import DType, Language, Status


class ChildFailed(Exception):
    """The candidate failed in its own process: how it ended (`status`), and in words (`detail`)."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(status, detail)
        self.status, self.detail = status, detail

    def __str__(self) -> str:
        return f"{self.status.value}: {self.detail}"


@dataclass(frozen=True)
class SpawnOrder:
    """One process for one candidate: what it runs, and the two memories it shares with the judge.

    `artifact` is a shared library (cpp) or a folder of sources (python); `entry_point` is "file::symbol".
    `input_fd` and `output_fd` are memfds that stay the judge's; the child maps the first read-only.
    A size of 0 maps nothing. `memory_bytes` is what the candidate may map beyond what its process has at the start.
    """

    language: Language
    artifact: Path
    entry_point: str
    destination_passing_style: bool
    threads: int
    input_fd: int
    output_fd: int
    input_bytes: int
    output_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class Argument:
    """One argument of the kernel, in order of the call.

    A tensor (`input`, `output`) is contiguous at `offset` bytes of its memory. A `scalar` has a `value`; so has an
    `axis`, which C++ receives as int64_t after everything else and Python does not receive at all.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    kind: Literal["input", "output", "scalar", "axis"]
    offset: int = 0
    value: float | int | bool | None = None
