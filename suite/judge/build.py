"""Turns a candidate's sources into what a child loads: compiled behind the sandbox's walls, kept by content."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from suite.errors import InfraError, UserError
from suite.judge.log import Log
from suite.types import Candidate, Language, digest_of

FLAGS = ("-O3", "-march=native", "-fopenmp", "-std=c++20", "-shared", "-fPIC", "-fdiagnostics-color=never")
LIGHT = (
    *("algorithm", "array", "cfloat", "cmath", "cstdint", "cstdlib", "cstring", "limits"),
    *("numeric", "omp.h", "type_traits", "utility", "vector"),
)
"""Included before every C++ file and compiled only once: reading these headers is half of a small kernel's build."""
HEAVY = ("atomic", "memory")
"""Where a source seems to need one, both of these as well: they cost every build 0.14 s, compiled or not."""
NEEDS_HEAVY = re.compile(
    r"atomic|memory_order|<memory>|_ptr\b|make_(shared|unique)|allocat|assume_aligned|uninitialized_|destroy_(at|n)\b"
    r"|std::(align|addressof|to_address|construct_at|destroy)\b"
)
PROGRAM = Path(__file__).parent.parent / "child"
LIBRARY = "kernel.so"
UNITS = (".cpp", ".cc", ".cxx")
TIMED_OUT, NOT_STARTED = 124, 125  # suite/child/confine.py
GRACE_S = 30.0
CPU_FIELDS = {"vendor_id", "cpu family", "model", "model name", "stepping", "flags"} | {
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
}


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


@dataclass(frozen=True)
class Compiler:
    """The compiler, what it says of itself, and how it is called."""

    path: Path
    version: str
    flags: tuple[str, ...]

    def key(self) -> list[JsonValue]:
        """All that decides what it makes of a text."""
        return [list(self.flags), str(self.path), self.version, cpu_model()]


@dataclass(frozen=True)
class Limits:
    """What a compilation may use. `file_bytes` is the largest file it may write."""

    seconds: float = 60.0
    memory_bytes: int = 4 << 30
    file_bytes: int = 256 << 20


class Builder:
    """Builds candidates into the folder `cache`; may be shared by processes."""

    def __init__(self, cache: Path, limits: Limits | None = None) -> None:
        self.cache, self.limits = cache, limits or Limits()
        self._compiler: Compiler | None = None

    def build(self, candidate: Candidate, abi: str = "") -> Artifact:
        """`abi`: declarations the C++ files are compiled after, so that a wrong prototype is a compile error.

        Raises `BuildFailed`; `UserError` when there is no compiler.
        """
        started = time.perf_counter()
        compiled = candidate.spec.language == Language.CPP
        key = self._key(candidate, abi) if compiled else digest_of(candidate.model_dump(mode="json")["sources"])
        entry = self.cache / key[:2] / key
        path = entry / LIBRARY if compiled else entry / "sources"
        cached = entry.exists()
        if not cached:
            self._make(candidate, abi if compiled else None, entry)
        log = (entry / "log").read_text(errors="replace")
        return Artifact(path, log, time.perf_counter() - started, cached)

    def _make(self, candidate: Candidate, abi: str | None, entry: Path) -> None:
        """Make the entry beside its place and move it there whole, so that no half of one is ever seen."""
        entry.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self.cache))
        try:
            sources = draft / "sources"
            _write(candidate, sources)
            log = "" if abi is None else self._compile(candidate, abi, draft)
            (draft / "log").write_text(log)
            _make_read_only(draft)
            with contextlib.suppress(OSError):  # another process was first: its entry has the same content
                draft.rename(entry)
                entry.chmod(0o555)
        finally:
            if draft.exists():
                _make_deletable(draft)
                shutil.rmtree(draft)

    def _compile(self, candidate: Candidate, abi: str, draft: Path) -> str:
        """Compile draft/sources into draft/kernel.so; returns the compiler's warnings."""
        compiler = self._find_compiler()
        # With ./ in front, or a file named -Tkernel.cpp would be taken for an option.
        units = [f"./{source.path}" for source in candidate.sources if source.path.endswith(UNITS)]
        if not units:
            raise BuildFailed(f"no C++ file among {[source.path for source in candidate.sources]}")
        with tempfile.TemporaryDirectory(prefix="derby-build-") as scratch:
            header = Path(scratch) / "abi.h"
            header.write_text(abi)
            output, prelude = Path(scratch) / LIBRARY, self._prelude(_headers(candidate))
            included = ["-include", str(prelude), "-include", str(header)]
            command = [str(compiler.path), *compiler.flags, "-I.", *included, "-o", str(output), *units]
            code, log = _confined(command, (draft / "sources", prelude.parent), Path(scratch), self.limits)
            if code == TIMED_OUT:
                raise BuildFailed(f"the compiler was stopped after {self.limits.seconds:g} s\n{log}")
            if code or not output.is_file() or output.is_symlink():
                raise BuildFailed(log or f"the compiler ended with code {code} and said nothing")
            shutil.copyfile(output, draft / LIBRARY)
        return log

    def _prelude(self, headers: tuple[str, ...]) -> Path:
        """A header of these headers, its compiled form beside it; g++ reads the text itself where that does not fit."""
        compiler = self._find_compiler()
        folder = self.cache / f"prelude-{digest_of([list(headers), *compiler.key()])[:16]}"
        if folder.exists():
            return folder / "prelude.h"
        self.cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=self.cache) as draft:
            made = Path(draft) / "made"
            made.mkdir()
            (made / "prelude.h").write_text("".join(f"#include <{name}>\n" for name in headers))
            command = [
                str(compiler.path),
                *compiler.flags,
                "-x",
                "c++-header",
                "prelude.h",
                "-o",
                str(made / "prelude.h.gch"),
            ]
            code, log = _confined(command, (made,), made, Limits())
            if code:
                raise InfraError(f"the compiler can't read the standard headers: {log}")
            with contextlib.suppress(OSError):  # another process was first
                made.rename(folder)
        return folder / "prelude.h"

    def _key(self, candidate: Candidate, abi: str) -> str:
        sources = candidate.model_dump(mode="json")["sources"]
        return digest_of([sources, abi, list(_headers(candidate)), *self._find_compiler().key()])

    def _find_compiler(self) -> Compiler:
        """The compiler, looked for once."""
        if self._compiler is None:
            found = shutil.which("g++")
            if found is None:
                raise UserError("there is no g++ on the PATH", "a C++20 compiler", "sudo apt-get install g++")
            version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
            # Where it came with the compiler: it reads the standard library's symbols in a quarter of the time.
            linker = ("-fuse-ld=gold",) if Path(found).with_name("ld.gold").exists() else ()
            self._compiler = Compiler(Path(found), version, (*FLAGS, *linker))
        return self._compiler


def _headers(candidate: Candidate) -> tuple[str, ...]:
    """The headers included before a candidate's own text."""
    heavy = any(NEEDS_HEAVY.search(source.content) for source in candidate.sources)
    return (*LIGHT, *HEAVY) if heavy else LIGHT


def _confined(command: list[str], readable: tuple[Path, ...], scratch: Path, limits: Limits) -> tuple[int, str]:
    """Run the compiler in the first of the folders it may read (beside the system) and with one it may write: its
    exit code and output.
    """
    homes = {str(path.parents[1]) for path in (Path(command[0]), Path(command[0]).resolve())}
    config = {
        "run": command,
        "read": ["/etc/alternatives", *homes, *map(str, readable)],
        "write": [str(scratch)],
        "environment": {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TMPDIR": str(scratch)},
        "without": [],
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
    }
    log = Log()
    try:
        program = [sys.executable, "-I", "-S", str(PROGRAM), json.dumps(config)]
        # Its standard input is how it notices that we are gone.
        with subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=log.fd, stderr=log.fd, env={}, cwd=readable[0]
        ) as process:
            try:
                _await_end(process, limits.seconds + GRACE_S)
            finally:
                process.kill()
        code = process.returncode
        if code == NOT_STARTED:
            raise InfraError(log.text())
        # The folder has another name each time, and is of no use to the reader.
        return code, log.text().replace(f"{scratch}/", "")
    finally:
        log.close()


def _await_end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Raises `InfraError` if it takes longer. Notices at once, where `Popen.wait` looks every 50 ms."""
    handle = os.pidfd_open(process.pid)
    try:
        if not select.select([handle], [], [], seconds)[0]:
            raise InfraError(f"the compiler's sandbox does not end within {seconds:g} s")
    finally:
        os.close(handle)


def cpu_model() -> str:
    """What -march=native depends on: two machines with the same text make the same code."""
    first, _, _ = Path("/proc/cpuinfo").read_text().partition("\n\n")
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in CPU_FIELDS]
    return "\n".join(lines)


def _write(candidate: Candidate, folder: Path) -> None:
    folder.mkdir()
    for source in candidate.sources:
        path = PurePosixPath(source.path)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in source.path:
            raise BuildFailed(f"{source.path!r} is no path inside the candidate's own folder")
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.content.encode(errors="surrogatepass"))
        except OSError as error:
            raise BuildFailed(f"{source.path!r} can't be written: {error.strerror}") from None


def _make_read_only(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() or path.name == LIBRARY else 0o444)


def _make_deletable(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
