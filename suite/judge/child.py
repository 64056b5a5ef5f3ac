"""The judge's end of one candidate's process: asks it, times it, stops it, and sees it dead."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from suite.child import wire
from suite.errors import InfraError
from suite.judge import procfs
from suite.judge.channel import Argument, ChildFailed
from suite.judge.log import Log
from suite.types import Status

START_S = 30.0
CONFIGURE_S = 10.0
EMPTY_CALL_S = 10.0
END_S = 30.0
STOP_S = 1.0
STOP_PAUSE_S = 20e-6
ENDING_S = 2.0
"""Between the end of the candidate's channel and word from its keeper of how it ended."""
UNASKED = "it sent a message that nobody had asked for"
FROZEN_CPU_S = 0.001
"""CPU time that a stopped process may seem to have used: what the clock had not yet been charged."""
FORGIVEN = 3
"""How often it may seem more in a process's life. A thread can be marked stopped, lose its processor, and be charged
for leaving it later, with all that a hypervisor stole meanwhile."""


@dataclass(frozen=True)
class ChildEnds:
    """What the judge holds of a child: two sockets, the log, and the folder to delete."""

    channel: socket.socket
    keeper: socket.socket
    log: Log
    scratch: Path

    def close(self) -> None:
        self.channel.close()
        self.keeper.close()
        self.log.close()
        _delete(self.scratch)


class Child:
    """One candidate's process. Every method raises `ChildFailed` for its failures and `InfraError` for ours.

    It is running after `spawn`, `load` and `configure`, and stopped after `call`, `empty_call` and `freeze`.
    """

    def __init__(self, ends: ChildEnds, started: float) -> None:
        """Wait for a process that is being started since `started` (perf_counter). Raises `InfraError`."""
        # A candidate that answers without reading would fill its channel, and a send would wait for ever.
        ends.channel.setblocking(False)
        self._ends = ends
        begun = receive(ends.keeper, wire.Kind.STARTED, START_S)
        self.pid, self._init = begun.code, begun.number
        ready = receive(ends.channel, wire.Kind.READY, START_S)
        layers = f"{begun.text};{ready.text}".split(";")
        self.sandbox = dict(layer.split("=", 1) for layer in sorted(layers))
        try:
            # Not by number, which may be another's once this process has been reaped.
            self._handle = os.pidfd_open(self.pid)
            self._threads = procfs.Threads(self.pid)
        except OSError as error:
            raise InfraError(f"a candidate's process was gone before it began: {error}") from error
        self._poller = select.poll()
        self._poller.register(ends.channel, select.POLLIN)
        self._poller.register(ends.keeper, select.POLLIN)
        self._number = self._overruns = 0
        self._frozen_at: float | None = None
        self._ended: wire.Message | None = None
        self._log: str | None = None
        self.start_s = time.perf_counter() - started

    def load(self, deadline_s: float) -> None:
        """Import or dlopen the candidate."""
        self._ask({"do": "load"})
        self._answer(self._wait(deadline_s), wire.Kind.LOADED, 0, f"loading it took longer than {deadline_s:g} s")

    def configure(self, arguments: tuple[Argument, ...]) -> None:
        """Set what every following call is called with."""
        self._ask({"do": "configure", "arguments": [_as_json(argument) for argument in arguments]})
        self._answer(self._wait(CONFIGURE_S), wire.Kind.CONFIGURED, 0, "it does not answer")

    def call(self, deadline_s: float) -> float:
        """Seconds of one round trip by the judge's clock; the process is stopped before and after."""
        return self._round_trip(wire.CALL, deadline_s)

    def empty_call(self) -> float:
        """The same round trip without the kernel."""
        return self._round_trip(wire.NOP, EMPTY_CALL_S)

    def freeze(self) -> float:
        """Stop every thread, and see it stopped: when that was (perf_counter)."""
        self._signal(signal.SIGSTOP)
        deadline = time.perf_counter() + STOP_S
        seen, used = 0.0, -1.0
        # A thread is marked stopped a moment before it leaves its processor; then the clock stands still.
        while not seen or used != (used := self.cpu_s()):
            if not self._threads.stopped():
                seen = 0.0
            elif not seen:
                seen = time.perf_counter()
            if self._gone():
                raise self._ending()
            if time.perf_counter() > deadline:
                raise ChildFailed(Status.POLICY, "its threads could not be stopped")
            # A thread must run once more to take note of its stop, perhaps on this processor, which a yield keeps.
            time.sleep(STOP_PAUSE_S)
        self._frozen_at = used
        return seen

    def thaw(self) -> None:
        """Let it run; `ChildFailed` if it kept running while it was stopped."""
        self._check_frozen()
        self._signal(signal.SIGCONT)
        self._frozen_at = None

    def cpu_s(self) -> float:
        """CPU seconds the process has used, all threads, read by the judge."""
        try:
            # The kernel's encoding of "this process's CPU clock", which clock_getcpuclockid(3) makes.
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            raise self._ending() from None

    def pending(self) -> bool:
        """Whether a message waits that nobody asked for."""
        return bool(select.select([self._ends.channel], [], [], 0)[0])

    def kill(self) -> str:
        """Kill everything it started, see it gone, and return its output (at most 64 KiB). May be called again.

        Raises `InfraError` if something is left after all.
        """
        if self._log is not None:
            return self._log
        self._log = ""
        try:
            with contextlib.suppress(OSError):
                self._ends.keeper.send(wire.DOWN.pack(wire.KILL, 0))
            try:
                if self._ended is None:
                    receive(self._ends.keeper, wire.Kind.EXITED, END_S)
                receive(self._ends.keeper, wire.Kind.EMPTY, END_S)
            except InfraError:  # no keeper any more: the kernel has killed its children, which may take a moment
                self._see_dead()
            self._log = self._ends.log.text()
        finally:
            os.close(self._handle)
            self._threads.close()
            self._ends.close()
        return self._log

    def _see_dead(self) -> None:
        deadline = time.monotonic() + END_S
        while any(procfs.state(f"/proc/{pid}/stat") not in "ZX" for pid in (self.pid, self._init) if pid):
            if time.monotonic() > deadline:
                raise InfraError(f"a candidate's process {self.pid} can't be killed")
            time.sleep(0.002)

    def _round_trip(self, what: int, deadline_s: float) -> float:
        self._refuse_pending()
        self._check_frozen()
        self._number += 1
        packet = wire.DOWN.pack(what, self._number)
        channel, handle, wait_ms = self._ends.channel, self._handle, max(1, round(deadline_s * 1000))
        frozen, self._frozen_at = self._frozen_at is not None, None
        try:
            begun = time.perf_counter_ns()
            channel.send(packet)  # first, so that the child finds it and is woken once instead of twice
            if frozen:
                signal.pidfd_send_signal(handle, signal.SIGCONT)
            events = self._poller.poll(wait_ms)
            data = channel.recv(wire.UP.size + 1, socket.MSG_DONTWAIT) if events else None
            answered = time.perf_counter_ns()
        except OSError:
            raise self._ending() from None
        behind = self._freeze_behind() if data else 0.0
        self._answer(data, wire.Kind.DONE, self._number, f"the call took longer than {deadline_s:g} s")
        return (answered - begun) / 1e9 + behind

    def _freeze_behind(self) -> float:
        """Stop the process when its answer has come: seconds it may have gone on working behind that.

        A thread that the signal waits for (in vfork, or starved of the processor) leaves the others running. The CPU
        time they use until they are seen stopped is paid for, but no more of it than time has passed.
        """
        answered, used = time.perf_counter(), self.cpu_s()
        seen = self.freeze()
        return min(seen - answered, self.cpu_s() - used)

    def _refuse_pending(self) -> None:
        if self.pending():
            raise ChildFailed(Status.POLICY, UNASKED) if self._receive() else self._ending()

    def _check_frozen(self) -> None:
        """Raises if it ran again and again while it was stopped, the baseline's turns included."""
        if self._frozen_at is not None and self.cpu_s() > self._frozen_at + FROZEN_CPU_S:
            self._overruns += 1
            if self._overruns > FORGIVEN:
                raise ChildFailed(Status.POLICY, "it ran while it was stopped")

    def _ask(self, request: dict[str, object]) -> None:
        self._refuse_pending()
        self.thaw()
        try:
            wire.send_json(self._ends.channel, request)
        except OSError:
            raise self._ending() from None

    def _wait(self, deadline_s: float) -> bytes | None:
        return self._receive() if self._poller.poll(deadline_s * 1000) else None

    def _receive(self) -> bytes:
        """One message, empty if there is none and never will be."""
        try:
            return self._ends.channel.recv(wire.UP.size + 1, socket.MSG_DONTWAIT)
        except OSError:
            return b""

    def _answer(self, data: bytes | None, kind: wire.Kind, number: int, late: str) -> None:
        """Take `data` for the awaited answer, or raise what it is instead. None: nothing came in time."""
        if data is None:
            raise ChildFailed(Status.TIMEOUT, late)
        if not data:
            raise self._ending()
        try:
            message = wire.unpack(data)
        except wire.BadMessage as error:
            raise ChildFailed(Status.POLICY, f"it sent what is no message ({error})") from None
        if message.kind == wire.Kind.FAILED and message.number == number and message.status != wire.FAILURES[0]:
            raise ChildFailed(Status(message.status), message.text)
        if (message.kind, message.number) != (kind, number):
            raise ChildFailed(Status.POLICY, UNASKED)

    def _signal(self, number: signal.Signals) -> None:
        try:
            signal.pidfd_send_signal(self._handle, number)
        except OSError:
            raise self._ending() from None

    def _gone(self) -> bool:
        return bool(select.select([self._handle], [], [], 0)[0])

    def _ending(self) -> ChildFailed:
        """How the process ended, as its keeper saw it. Raises `InfraError` if the keeper is gone as well."""
        if self._ended is None:
            if not select.select([self._ends.keeper], [], [], ENDING_S)[0]:
                return ChildFailed(Status.POLICY, "it closed its channel to the judge, or does not read it")
            self._ended = receive(self._ends.keeper, wire.Kind.EXITED, ENDING_S)
        return ChildFailed(Status.RUNTIME_ERROR, _in_words(self._ended.code, self._ends.log.text()))


def receive(sock: socket.socket, kind: wire.Kind, deadline_s: float) -> wire.Message:
    """The next message, from a process that is still ours. Raises `InfraError` if it isn't of this kind."""
    if not select.select([sock], [], [], deadline_s)[0]:
        raise InfraError(f"no word within {deadline_s:g} s")
    try:
        message = wire.unpack(sock.recv(wire.UP.size + 1))
    except (OSError, wire.BadMessage) as error:
        raise InfraError(f"a process of ours is gone ({error})") from error
    if message.kind != kind:
        raise InfraError(f"expected {kind.name}, got {message.kind.name} {message.text}")
    return message


def _in_words(wait_status: int, log: str) -> str:
    """The log only chooses words here; the verdict is the same."""
    if not os.WIFSIGNALED(wait_status):
        return f"exited with code {os.WEXITSTATUS(wait_status)} before it had answered"
    name = signal.Signals(os.WTERMSIG(wait_status)).name
    return f"killed by {name}, out of memory (std::bad_alloc)" if "std::bad_alloc" in log else f"killed by {name}"


def _as_json(argument: Argument) -> dict[str, object]:
    return {
        "name": argument.name,
        "dtype": argument.dtype.value,
        "shape": argument.shape,
        "kind": argument.kind,
        "offset": argument.offset,
        "value": argument.value,
    }


def _delete(scratch: Path) -> None:
    """Delete the folder. Where it was a folder of the disk the candidate chose its contents: let rm see to it."""
    try:
        scratch.rmdir()
    except OSError:
        subprocess.run(["chmod", "-R", "u+rwX", "--", scratch], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", scratch], check=False, capture_output=True)
