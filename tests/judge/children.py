"""Helpers for tests of single children: memory to share, candidates from a few lines, and who is still alive."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suite.judge.build import Builder
from suite.judge.zygote import Argument, Child, ChildFailed, SpawnOrder, Zygote
from suite.types import Candidate, DType, Language, SourceFile, Spec

COUNT = 1000
ARGUMENTS = (
    Argument("x", DType.FLOAT32, (COUNT,), "input"),
    Argument("factor", DType.FLOAT32, (), "scalar", value=3.0),
    Argument("y", DType.FLOAT32, (COUNT,), "output"),
    Argument("n", DType.INT64, (), "axis", value=COUNT),
)
SIGNATURE = 'extern "C" int run(const float* x, float factor, float* y, int64_t n)'
IN_PLACE = "def run(x, factor, y):\n"
RETURNING = "def run(x, factor):\n"


def cpp(body: str, before: str = "", symbol: str = "run") -> Candidate:
    """A C++ candidate with this body."""
    source = f"#include <cstdint>\n#include <cstdlib>\n{before}\n{SIGNATURE} {{\n{body}\n}}\n"
    spec = Spec(language=Language.CPP, entry_point=f"kernel.cpp::{symbol}")
    return Candidate(spec=spec, sources=(SourceFile(path="kernel.cpp", content=source),))


def python(source: str, *, destination: bool = True) -> Candidate:
    spec = Spec(language=Language.PYTHON, entry_point="kernel.py::run", destination_passing_style=destination)
    return Candidate(spec=spec, sources=(SourceFile(path="kernel.py", content=source),))


@dataclass(frozen=True)
class Stand:
    """Memory for one float vector in and one out, a builder, and a zygote."""

    builder: Builder
    zygote: Zygote
    input_fd: int
    output_fd: int

    def fill(self) -> None:
        """0, 1, 2 ... as input, NaN as output."""
        os.pwrite(self.input_fd, struct.pack(f"{COUNT}f", *range(COUNT)), 0)
        os.pwrite(self.output_fd, b"\xff" * 4 * COUNT, 0)

    def output(self) -> tuple[float, ...]:
        return struct.unpack(f"{COUNT}f", os.pread(self.output_fd, 4 * COUNT, 0))

    def order(self, candidate: Candidate) -> SpawnOrder:
        spec = candidate.spec
        return SpawnOrder(
            language=spec.language,
            artifact=self.builder.build(candidate).path,
            entry_point=spec.entry_point,
            destination_passing_style=spec.destination_passing_style,
            threads=2,
            input_fd=self.input_fd,
            output_fd=self.output_fd,
            input_bytes=4 * COUNT,
            output_bytes=4 * COUNT,
            memory_bytes=4 << 30,
        )

    @contextmanager
    def child(self, candidate: Candidate, **changes: Any) -> Iterator[Child]:
        """A process for the candidate, not yet loaded; killed at the end."""
        child = self.zygote.spawn(replace(self.order(candidate), **changes))
        try:
            yield child
        finally:
            child.kill()

    @contextmanager
    def ready(self, candidate: Candidate) -> Iterator[Child]:
        """The same, loaded and configured."""
        with self.child(candidate) as child:
            child.load(20)
            child.configure(ARGUMENTS)
            yield child

    def ending(self, candidate: Candidate, call_s: float = 20.0, **changes: Any) -> tuple[ChildFailed, str]:
        """How a candidate that must fail fails, and what it printed."""
        with self.child(candidate, **changes) as child:
            try:
                child.load(20)
                child.configure(ARGUMENTS)
                child.call(call_s)
            except ChildFailed as failed:
                return failed, child.kill()
        raise AssertionError("the candidate did not fail")

    def printed(self, candidate: Candidate) -> str:
        """What a candidate prints in its load and one call."""
        with self.ready(candidate) as child:
            child.call(20)
            return child.kill()


@contextmanager
def stand(folder: Path, zygote: Zygote) -> Iterator[Stand]:
    input_fd, output_fd = os.memfd_create("in"), os.memfd_create("out")
    os.ftruncate(input_fd, 4 * COUNT)
    os.ftruncate(output_fd, 4 * COUNT)
    try:
        with zygote:
            yield Stand(Builder(folder), zygote, input_fd, output_fd)
    finally:
        os.close(input_fd)
        os.close(output_fd)


def family(zygote_pid: int) -> set[int]:
    """The zygote and everything forked from it that is alive: all carry its command line."""
    mark = scratch_root(zygote_pid).encode()
    return {int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit() and mark in _line(folder)}


def scratch_root(zygote_pid: int) -> str:
    """The folder that holds the scratch folders of the zygote's children."""
    config = Path(f"/proc/{zygote_pid}/cmdline").read_bytes().split(b"\0")[-2]
    return str(json.loads(config)["scratch_root"])


def keeper_of(child: Child) -> int:
    fields = Path(f"/proc/{child.pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1])


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes() if alive(int(folder.name)) else b""
    except OSError:
        return b""
