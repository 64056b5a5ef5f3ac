"""The judge's handle on candidates: a zygote that forks one sandboxed process for each, and that process."""

from __future__ import annotations

from types import TracebackType

from suite.judge.channel import Argument, ChildFailed, SpawnOrder

__all__ = ["Argument", "Child", "ChildFailed", "SpawnOrder", "Zygote"]


class Zygote:
    """Forks candidates' processes from one that has torch imported and holds nothing of the judge's.

    Start it before anything writable is mapped. If it was found dead, `spawn` raises `InfraError` and the next starts anew.
    """

    def __init__(self, cpus: tuple[int, ...]) -> None:
        self.cpus = cpus

    def __enter__(self) -> Zygote:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def spawn(self, order: SpawnOrder) -> Child:
        """A fresh process, sandbox closed, memory mapped, candidate not yet loaded. Raises `InfraError`."""
        raise NotImplementedError


class Child:
    """One candidate's process. Every method raises `ChildFailed` for its failures and `InfraError` for ours.

    It is running after `spawn`, `load` and `configure`, and stopped after `call`, `empty_call` and `freeze`.
    """

    pid: int
    start_s: float
    sandbox: dict[str, str]

    def load(self, deadline_s: float) -> None:
        """Import or dlopen the candidate."""
        raise NotImplementedError

    def configure(self, arguments: tuple[Argument, ...]) -> None:
        """Set what every following call is called with."""
        raise NotImplementedError

    def call(self, deadline_s: float) -> float:
        """Seconds of one round trip by the judge's clock; the process is stopped before and after."""
        raise NotImplementedError

    def empty_call(self) -> float:
        """The same round trip without the kernel."""
        raise NotImplementedError

    def freeze(self) -> None:
        raise NotImplementedError

    def thaw(self) -> None:
        raise NotImplementedError

    def cpu_s(self) -> float:
        """CPU seconds the process has used, all threads, read by the judge."""
        raise NotImplementedError

    def pending(self) -> bool:
        """Whether a message waits that nobody asked for."""
        raise NotImplementedError

    def kill(self) -> str:
        """Kill everything it started, see it gone, and return its output (at most 64 KiB). May be called again."""
        raise NotImplementedError
