"""A candidate's process: closes the sandbox around itself, then loads the candidate and calls it when asked.

Whatever is written here the candidate may read, change or forge once it is loaded; nothing here is trusted by the
judge, which keeps answers, clock and verdict to itself. No candidate code runs before READY has been sent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import json
import mmap
import os
import random
import signal
import socket
import sys
import traceback

import callee
import sandbox
import torch
import wire
from walls import namespaces, syscalls

OURS = ("callee", "keeper", "pages", "sandbox", "walls", "wire", "worker", "zygote")
"""Our modules' names, which a candidate's own files may have as well."""
CHANNEL, INPUTS, OUTPUTS = 3, 4, 5
KEPT = ("PATH", "LANG", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY")


def run(order: dict, fds: list[int], separate: bool) -> None:
    """The candidate's whole life; never returns. `fds`: channel, log, inputs, outputs. `separate`: in a namespace."""
    try:
        channel = _set_up(order, fds, separate)
    except Exception as error:  # noqa: BLE001 the fence: a wall that can't be built is reported, whatever the reason
        socket.socket(fileno=fds[0]).send(wire.pack(wire.Message(wire.Kind.FAILED, text=f"sandbox: {error!r}")))
        os._exit(1)
    _serve(channel, order)
    os._exit(0)


def _set_up(order: dict, fds: list[int], separate: bool) -> socket.socket:
    syscalls.die_with_parent(signal.SIGKILL)
    os.setsid()
    _arrange_descriptors(fds)
    inputs = _map(INPUTS, order["input_bytes"], mmap.PROT_READ)
    outputs = _map(OUTPUTS, order["output_bytes"], mmap.PROT_READ | mmap.PROT_WRITE)
    # An open descriptor would let the candidate resize the memory under the judge.
    os.closerange(INPUTS, OUTPUTS + 1)
    callee.MEMORY.update(input=inputs, output=outputs)
    # Where OMP_PROC_BIND would have this thread, had OpenMP not been loaded by another process. Free to move, it would
    # be woken on the judge's CPU, in the way of a thread that is bound there.
    os.sched_setaffinity(0, order["cpus"][:1])
    _set_environment(order)
    proc = namespaces.mount_proc() if separate else "shared"
    profile = {"proc": proc, "memory": sandbox.limit(order["memory_bytes"])}
    read = [*sandbox.python_folders(), *sandbox.proc_paths(proc), order["artifact"]]
    profile |= sandbox.close(read, [order["scratch"]], processes=False, without=frozenset(order["without"]))
    torch.set_num_threads(order["threads"])
    random.seed()
    gc.enable()
    channel = socket.socket(fileno=CHANNEL)
    channel.send(wire.pack(wire.Message(wire.Kind.READY, text=sandbox.in_words(profile))))
    return channel


def _arrange_descriptors(fds: list[int]) -> None:
    """Keep nothing but: 0 /dev/null, 1 and 2 the log, then channel, inputs, outputs. `separate`: in a namespace."""
    channel, log, inputs, outputs = (os.dup2(fd, 100 + place) for place, fd in enumerate(fds))
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate([null, log, log, channel, inputs, outputs]):
        os.dup2(source, target, inheritable=False)
    os.closerange(OUTPUTS + 1, os.sysconf("SC_OPEN_MAX"))


def _map(fd: int, size: int, protection: int):
    """The memory as a ctypes array, or None. Not by Python's mmap, which keeps a copy of the descriptor."""
    return (ctypes.c_char * size).from_address(syscalls.map_shared(fd, size, protection)) if size else None


def _set_environment(order: dict) -> None:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept, HOME=order["scratch"], TMPDIR=order["scratch"], OMP_NUM_THREADS=str(order["threads"]))
    os.chdir(order["scratch"])
    sys.stdout = sys.stderr = io.TextIOWrapper(_Log(), line_buffering=True, write_through=True, errors="replace")
    sys.argv[:] = ["candidate"]
    sys.path[:] = [folder for folder in sys.path if folder != os.path.dirname(__file__)]
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]


class _Log(io.RawIOBase):
    """The log, which takes what fits: a candidate that prints too much isn't told and doesn't fail."""

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        with contextlib.suppress(OSError):
            os.write(1, data)
        return len(data)


def _serve(channel: socket.socket, order: dict) -> None:
    """Answer until the judge closes its end."""
    kernel = callee.Kernel(order)
    down = wire.DOWN
    while data := channel.recv(wire.JSON_BYTES):
        number = 0
        try:
            if data[0] == wire.CALL:
                _, number = down.unpack(data)
                kernel.call()
                kind = wire.Kind.DONE
            elif data[0] == wire.NOP:
                _, number = down.unpack(data)
                kind = wire.Kind.DONE
            else:
                kind = _prepare(kernel, json.loads(data))
        except callee.Wrong as wrong:
            answer = wire.Message(wire.Kind.FAILED, number, status=wrong.status, text=wrong.detail)
        except BaseException as error:  # noqa: BLE001 the fence: whatever a candidate raises is its result
            answer = wire.Message(wire.Kind.FAILED, number, status="RUNTIME_ERROR", text=describe(error))
        else:
            answer = wire.Message(kind, number)
        channel.send(wire.pack(answer))


def _prepare(kernel: callee.Kernel, request: dict) -> wire.Kind:
    if request["do"] == "load":
        kernel.load()
        return wire.Kind.LOADED
    kernel.configure(request["arguments"])
    return wire.Kind.CONFIGURED


def describe(error: BaseException) -> str:
    """The exception in one line, with the candidate's own line it came from; the whole traceback goes to the log."""
    traceback.print_exception(error)
    if isinstance(error, SystemExit):
        return f"called sys.exit({error.code!r})"
    lines = [
        frame for frame in traceback.extract_tb(error.__traceback__) if os.path.dirname(__file__) not in frame.filename
    ]
    where = f" ({os.path.basename(lines[-1].filename)}, line {lines[-1].lineno})" if lines else ""
    return f"{type(error).__name__}: {error}"[:400] + where
