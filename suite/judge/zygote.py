"""The judge's end of the zygote: the process that has torch imported and is forked, sandboxed, for each candidate."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from suite.child import wire
from suite.errors import InfraError
from suite.judge.channel import Argument, ChildFailed, SpawnOrder
from suite.judge.child import Child, ChildEnds, receive
from suite.judge.log import Log

__all__ = ["Argument", "Child", "ChildFailed", "SpawnOrder", "Zygote"]

PROGRAM = Path(__file__).parent.parent / "child"
START_S = 120.0
"""A first import of torch from a cold, slow disk."""
END_S = 10.0
PREFIX = "derby-zygote-"
YOUNG_S = 60.0
"""A folder younger than this may not have got its lock yet."""


@dataclass(frozen=True)
class _Running:
    """A live zygote: its process, our end of its socket, and the folder it takes with it."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    folder: Path

    @property
    def complaint(self) -> str:
        """The end of what it wrote to standard error."""
        with contextlib.suppress(OSError):
            return (self.folder / "stderr").read_text(errors="replace")[-2000:].strip()
        return ""


class Zygote:
    """Forks candidates' processes from one that has torch imported and holds nothing of the judge's.

    It is exec'd, so that it shares no memory with the judge. If it was found dead, whoever noticed gets `InfraError`
    and the next `spawn` starts another. `without` leaves layers of the sandbox out (namespaces, landlock, seccomp,
    cgroup), to see what the remaining ones hold.
    """

    def __init__(self, cpus: tuple[int, ...], without: frozenset[str] = frozenset()) -> None:
        self.cpus, self.without = cpus, without
        self._running: _Running | None = None

    @property
    def pid(self) -> int | None:
        """Of the zygote's process, if there is one."""
        return None if self._running is None else self._running.process.pid

    def __enter__(self) -> Zygote:
        self._running = self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def spawn(self, order: SpawnOrder) -> Child:
        """A fresh process, sandbox closed, memory mapped, candidate not yet loaded. Raises `InfraError`."""
        if self._running is not None and self._running.process.poll() is not None:
            self._stop()
        if self._running is None:
            self._running = self._start()
        running, started = self._running, time.perf_counter()
        scratch = Path(tempfile.mkdtemp(dir=running.folder, prefix="candidate-"))
        channel, channel_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keeper, keeper_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ends = ChildEnds(channel, keeper, Log(), scratch)
        shared = (
            order.input_fd if order.input_bytes else ends.log.fd,
            order.output_fd if order.output_bytes else ends.log.fd,
        )
        try:
            with channel_end, keeper_end:
                fds = (channel_end.fileno(), keeper_end.fileno(), ends.log.fd, *shared)
                wire.send_json(running.control, _as_json(order, scratch), fds)
            return Child(ends, started)
        except (OSError, InfraError) as error:
            ends.close()
            raise InfraError(f"no process for a candidate: {error} {running.complaint}".strip()) from error

    def _start(self) -> _Running:
        _sweep(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = {
            "fd": theirs.fileno(),
            "cpus": self.cpus,
            "without": sorted(self.without),
            "scratch_root": str(folder),
        }
        with theirs, (folder / "stderr").open("wb") as stderr:
            fcntl.flock(stderr, fcntl.LOCK_EX)  # held by the zygote for as long as it lives
            process = subprocess.Popen(
                [sys.executable, "-I", str(PROGRAM), json.dumps(config)],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=_environment(self.cpus),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is the judge's to handle; the zygote ends with its socket
            )
        running = _Running(process, control, folder)
        try:
            receive(control, wire.Kind.READY, START_S)
        except (OSError, InfraError) as error:
            self._running = running
            complaint = running.complaint
            self._stop()
            raise InfraError(f"the zygote does not start: {error} {complaint}".strip()) from error
        return running

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        running.control.close()
        try:
            running.process.wait(END_S)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        shutil.rmtree(running.folder, ignore_errors=True)


def _as_json(order: SpawnOrder, scratch: Path) -> dict[str, object]:
    return {
        "language": order.language.value,
        "artifact": str(order.artifact.resolve()),
        "entry_point": order.entry_point,
        "destination_passing_style": order.destination_passing_style,
        "threads": order.threads,
        "input_bytes": order.input_bytes,
        "output_bytes": order.output_bytes,
        "memory_bytes": order.memory_bytes,
        "scratch": str(scratch),
    }


def _sweep(parent: Path) -> None:
    """Delete the folders of zygotes that were killed together with their judge."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            if time.time() - folder.stat().st_mtime < YOUNG_S:
                continue
            with (folder / "stderr").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, another's, or just gone
            continue


def _environment(cpus: tuple[int, ...]) -> dict[str, str]:
    """The zygote's whole environment: nothing of ours, and what keeps timings quiet.

    One thread in the zygote itself (a fork of a thread pool hangs); OpenMP threads bound to their CPU, which wait
    briefly before they sleep; an allocator that neither maps nor trims, or identical processes differ by half.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
    return {
        **kept,
        **single,
        "LANG": "C.UTF-8",
        "OMP_PROC_BIND": "true",
        "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in cpus),
        "GOMP_SPINCOUNT": "20000",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    }
