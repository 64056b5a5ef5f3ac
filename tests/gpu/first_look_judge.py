"""The judge's side of first_look.py: ROUGH, a first cut to learn from, to be replaced by the sm90 lane's judge.

The judge owns all memory and its own stream; a worker (first_look_worker.py) queues calls of the candidate, each behind
a wait on the judge's flag. For every call the judge hands the GPU, in one go: poison the outputs, fresh inputs at the
same addresses, flush 128 MB, flag, wait for done, a null kernel, mark, a copy of the outputs. Its CPU polls flag (t0),
done (t1) and mark (t2). All outputs are compared afterwards with a float32 reference.
"""

from __future__ import annotations

import fcntl
import gc
import itertools
import json
import math
import mmap
import os
import random
import signal
import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver as cu

from tests.gpu.first_look_worker import (
    GEQ,
    PAGE,
    REPLY,
    address_of,
    check,
    enter_context,
    event_pair,
    map_device_memory,
    null_kernel,
    view,
)

CALLS = 60
REDZONE = 4096
FLUSH_BYTES = 128 << 20
POOL_ELEMENTS = 256 << 20
NORM_LIMIT, LSE_LIMIT = 1e-2, 1e-4  # provisional: the task's calibration decides
GRACE_S, DEADLINE_S = 0.02, 2.0
SEALS = 0x10 | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL  # 0x10: F_SEAL_FUTURE_WRITE


def align(value: int, step: int) -> int:
    return (value + step - 1) // step * step


class Arena:
    """Device memory of the judge's: mapped read-write here, handed on as a file descriptor."""

    def __init__(self, size: int) -> None:
        prop = cu.CUmemAllocationProp()
        prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        prop.location.id = 0
        posix = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        prop.requestedHandleTypes = posix
        minimum = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self.granularity = check(cu.cuMemGetAllocationGranularity(prop, minimum))
        self.size = align(size, self.granularity)
        self.handle = check(cu.cuMemCreate(self.size, prop, 0))
        self.address = map_device_memory(self.handle, self.size, True)
        self.fd = int(check(cu.cuMemExportToShareableHandle(self.handle, posix, 0)))

    def close(self) -> None:
        os.close(self.fd)
        check(cu.cuMemUnmap(self.address, self.size))
        check(cu.cuMemRelease(self.handle))


class Page:
    """A registered host page that the GPU and both CPUs see; `sealed`: nobody else can map it writable."""

    def __init__(self, sealed: bool) -> None:
        self.fd = os.memfd_create("page", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, PAGE)
        self.map = mmap.mmap(self.fd, PAGE)
        if sealed:
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, SEALS)
        flags = cu.CU_MEMHOSTREGISTER_DEVICEMAP | cu.CU_MEMHOSTREGISTER_PORTABLE
        check(cu.cuMemHostRegister(address_of(self.map), PAGE, flags))
        self.device = int(check(cu.cuMemHostGetDevicePointer(address_of(self.map), 0)))
        self.words = memoryview(self.map).cast("I")

    def close(self) -> None:
        """Unregister first: the driver would refuse the next page that happens to be mapped at this address."""
        check(cu.cuMemHostUnregister(address_of(self.map)))
        os.close(self.fd)


class WorkerFailed(Exception):
    """The worker said so, died, or missed a deadline."""


class Pool:
    """Standard normals to copy inputs from, so that fresh contents cost one device-to-device copy."""

    def __init__(self) -> None:
        generator = torch.Generator("cuda").manual_seed(11)
        self.data = torch.empty(POOL_ELEMENTS, dtype=torch.bfloat16, device="cuda").normal_(generator=generator)


class Contents:
    """One workload's memory: layout of the arguments, contents of call k, reference on what lies there."""

    def __init__(self, lengths: list[int], pool: Pool, seed: int) -> None:
        self.lengths, self.pool, self.seed = lengths, pool, seed
        batch, tokens, pages = len(lengths), sum(lengths), sum(lengths) + 8
        indptr = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
        self.orders = [torch.randperm(pages, device="cuda")[:tokens].int() for _ in range(4)]
        cache = [pages, 1, 4, 128]
        shapes = {
            "q": ([batch, 32, 128], "bfloat16"),
            "k_cache": (cache, "bfloat16"),
            "v_cache": (cache, "bfloat16"),
            "kv_indptr": ([batch + 1], "int32"),
            "kv_indices": ([tokens], "int32"),
        }
        self.arguments, input_bytes = self.layout("input", shapes, 0)
        self.arguments.append({"name": "sm_scale", "kind": "scalar", "value": 1 / math.sqrt(128)})
        outputs, self.output_bytes = self.layout(
            "output", {"output": ([batch, 32, 128], "bfloat16"), "lse": ([batch, 32], "float32")}, REDZONE
        )
        self.arguments += outputs
        self.inputs, self.outputs = Arena(input_bytes), Arena(self.output_bytes)
        base = {"input": self.inputs.address, "output": self.outputs.address}
        self.tensors = {
            a["name"]: view(base[a["kind"]] + a["offset"], a["shape"], a["dtype"])
            for a in self.arguments
            if a["kind"] != "scalar"
        }
        self.tensors["kv_indptr"].copy_(indptr)
        self.saved = torch.zeros((CALLS, self.output_bytes), dtype=torch.uint8, device="cuda")
        longest = max(*lengths, 1)
        steps = torch.arange(longest, device="cuda")
        self.valid = steps[None, :] < torch.tensor(lengths, device="cuda")[:, None]
        self.where = (indptr[:-1, None].cuda() + steps[None, :]).clamp(max=max(tokens - 1, 0))

    @staticmethod
    def layout(kind: str, shapes: dict[str, tuple[list[int], str]], redzone: int) -> tuple[list[dict[str, Any]], int]:
        """Arguments at 4 KiB steps, with a red zone after each, and the bytes they take."""
        arguments, offset = [], 0
        for name, (shape, dtype) in shapes.items():
            arguments.append({"name": name, "kind": kind, "offset": offset, "shape": shape, "dtype": dtype})
            offset += align(math.prod(shape) * (2 if dtype == "bfloat16" else 4), 4096) + redzone
        return arguments, offset

    def refresh(self, k: int, stream: Any) -> None:
        """New contents of every input but the lengths."""
        dice = random.Random(self.seed * 1_000_003 + k)
        for name in ("q", "k_cache", "v_cache"):
            tensor = self.tensors[name]
            offset = dice.randrange((POOL_ELEMENTS - tensor.numel()) // 128) * 128
            check(
                cu.cuMemcpyDtoDAsync(
                    tensor.data_ptr(), self.pool.data.data_ptr() + 2 * offset, 2 * tensor.numel(), stream
                )
            )
        order = dice.choice(self.orders)
        if len(order):
            check(cu.cuMemcpyDtoDAsync(self.tensors["kv_indices"].data_ptr(), order.data_ptr(), 4 * len(order), stream))

    def reference(self, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
        batch = len(self.lengths)
        if not sum(self.lengths):
            return torch.zeros((batch, 32, 128), device="cuda"), torch.full((batch, 32), -math.inf, device="cuda")
        slots = self.tensors["kv_indices"].long()[self.where]
        keys, values = (self.tensors[name][slots, 0].to(dtype).transpose(1, 2) for name in ("k_cache", "v_cache"))
        query = self.tensors["q"].to(dtype).view(batch, 4, 8, 128)
        logits = (query @ keys.transpose(2, 3) / math.sqrt(128)).masked_fill(~self.valid[:, None, None, :], -math.inf)
        lse = torch.logsumexp(logits, 3)
        weights = torch.exp(logits - lse[..., None].clamp(min=-1e30))
        return (weights @ values).view(batch, 32, 128), (lse / math.log(2)).view(batch, 32)

    def errors(self, slot: int) -> tuple[float, float, float, bool]:
        """Saved outputs against the reference on the contents in place.

        Worst request's relative norm, worst element over its request's rms, worst lse difference, and whether NaN,
        infinities and red zones are as they must be.
        """
        raw = self.saved[slot]
        got, got_lse = (
            raw[a["offset"] :][: math.prod(a["shape"]) * size].view(getattr(torch, a["dtype"])).view(a["shape"])
            for a, size in zip(self.arguments[-2:], (2, 4), strict=True)
        )
        want, want_lse = self.reference()
        difference = (got.float() - want).flatten(1)
        rms = want.flatten(1).square().mean(1).sqrt().clamp(min=1e-30)
        finite = torch.isfinite(want_lse)
        empty = ~self.valid.any(1)
        ok = (got_lse[~finite] == -math.inf).all() & torch.isfinite(got).all() & (got[empty] == 0).all()
        for a, size in zip(self.arguments[-2:], (2, 4), strict=True):
            end = a["offset"] + math.prod(a["shape"]) * size
            ok &= (raw[end : a["offset"] + align(end - a["offset"], 4096) + REDZONE] == 0xFF).all()
        norm = (difference.square().mean(1).sqrt() / rms)[~empty]
        worst = (difference.abs().amax(1) / rms)[~empty]
        figures = [
            x.max() if x.numel() else torch.zeros((), device="cuda")
            for x in (norm, worst, (got_lse - want_lse)[finite].abs())
        ]
        row = torch.stack([*figures, ok.float()]).tolist()
        return row[0], row[1], row[2], bool(row[3])

    def close(self) -> None:
        self.inputs.close()
        self.outputs.close()


@dataclass
class Block:
    """One run of calls. Microseconds; `claims` are the worker's own times, empty unless asked for."""

    call: list[float] = field(default_factory=list)  # t1 - t0
    mark: list[float] = field(default_factory=list)  # t2 - t0
    audit: list[float] = field(default_factory=list)  # b - a, judge's events around refresh and flush
    claims: list[float] = field(default_factory=list)
    late: int = 0  # calls released although the worker was not ready within the grace time
    wall_ms: float = 0.0
    norm: float = 0.0  # worst errors and wrong calls, once verified
    worst: float = 0.0
    lse: float = 0.0
    wrong: int = 0


class Worker:
    """The judge's end of one worker."""

    def __init__(self, zygote: socket.socket, core: int, candidate: Path | None) -> None:
        self.flag, self.shared, self.next = Page(sealed=True), Page(sealed=False), 1
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(30)
        begin = time.perf_counter()
        socket.send_fds(zygote, [b'{"fork": 1}'], [theirs.fileno()])
        theirs.close()
        self.pid = struct.unpack("<i", zygote.recv(4))[0]
        fork = time.perf_counter() - begin
        order = {"core": core, "candidate": str(candidate), "channel_only": candidate is None}
        _, parts = self.ask("start", [self.flag.fd, self.shared.fd], **order)
        self.start_ms = [1e3 * s for s in (fork, *parts, time.perf_counter() - begin)]

    def send(self, do: str, fds: list[int], **order: Any) -> None:
        socket.send_fds(self.socket, [json.dumps({"do": do, **order}).encode()], fds)

    def reply(self) -> tuple[str, list[float]]:
        data = self.socket.recv(REPLY.size + 1)
        if len(data) != REPLY.size:
            raise WorkerFailed("the worker died" if not data else "a message of the wrong size")
        status, count, text, *times = REPLY.unpack(data)
        if status:
            raise WorkerFailed(text.rstrip(b"\0").decode(errors="replace"))
        return text.rstrip(b"\0").decode(errors="replace"), times[: min(count, 64)]

    def ask(self, do: str, fds: list[int], **order: Any) -> tuple[str, list[float]]:
        self.send(do, fds, **order)
        return self.reply()

    def map(self, contents: Contents) -> tuple[str, list[float]]:
        arenas = (contents.inputs, contents.outputs)
        return self.ask("map", [a.fd for a in arenas], sizes=[a.size for a in arenas], arguments=contents.arguments)

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        self.pid = 0

    def close(self) -> None:
        self.kill()
        self.socket.close()
        self.flag.close()
        self.shared.close()


class Judge:
    """Owns the card's memory, the flag, the clock and the verdict."""

    def __init__(self, core: int) -> None:
        os.sched_setaffinity(0, {core})
        enter_context()
        self.torch_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        torch.cuda.set_stream(self.torch_stream)
        self.stream = cu.CUstream(self.torch_stream.cuda_stream)
        self.null = null_kernel()
        self.private = Page(sealed=True)  # word 0: go, word 1: mark
        self.serial = 0
        self.flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self.pool = Pool()

    def submit(self, worker: Worker, contents: Contents, slot: int, events: tuple[Any, Any], hold: bool) -> None:
        """Queue one call's whole traffic. With `hold` the stream first waits for our own CPU, so that nothing of it
        runs before all of it is queued: no gap can open between flush and flag, however slow this process is."""
        k, stream = worker.next, self.stream
        if hold:
            check(cu.cuStreamWaitValue32(stream, self.private.device, self.serial, GEQ))
        check(cu.cuMemsetD8Async(contents.outputs.address, 0xFF, contents.output_bytes, stream))
        events[0].record(self.torch_stream)
        contents.refresh(k, stream)
        check(cu.cuMemsetD32Async(self.flush.data_ptr(), k, FLUSH_BYTES // 4, stream))
        events[1].record(self.torch_stream)
        check(cu.cuStreamWriteValue32(stream, worker.flag.device, k, 0))
        check(cu.cuStreamWaitValue32(stream, worker.shared.device, k, GEQ))
        self.null(stream)
        check(cu.cuStreamWriteValue32(stream, self.private.device + 4, self.serial, 0))
        check(
            cu.cuMemcpyDtoDAsync(
                contents.saved[slot].data_ptr(), contents.outputs.address, contents.output_bytes, stream
            )
        )

    def block(
        self,
        worker: Worker,
        contents: Contents,
        how: str = "bare",
        nulls: int = -1,
        hold: bool = True,
        calls: int = CALLS,
    ) -> Block:
        """`calls` calls of the worker's candidate, or of `nulls` null kernels; `how` as in the worker's do_block."""
        result, start = Block(), time.perf_counter()
        pairs = [event_pair() for _ in range(calls)]
        worker.send("block", [], first=worker.next, calls=calls, how=how, nulls=nulls)
        grace = 5.0 if how == "traced" else GRACE_S
        gc.disable()
        for index in range(calls):
            self.serial += 1
            k, ready = worker.next, time.perf_counter() + grace
            while worker.shared.words[1] < k and time.perf_counter() < ready:
                pass
            result.late += worker.shared.words[1] < k
            self.submit(worker, contents, index, pairs[index], hold)
            self.private.words[0] = self.serial
            t0 = self.poll(worker, worker.flag.words, 0, k)
            t1 = self.poll(worker, worker.shared.words, 0, k)
            t2 = self.poll(worker, self.private.words, 1, self.serial)
            result.call.append((t1 - t0) / 1e3)
            result.mark.append((t2 - t0) / 1e3)
            worker.next += 1
        gc.enable()
        self.torch_stream.synchronize()
        result.claims = worker.reply()[1]
        result.audit = [a.elapsed_time(b) * 1e3 for a, b in pairs]
        result.wall_ms = 1e3 * (time.perf_counter() - start)
        return result

    def poll(self, worker: Worker, words: memoryview, word: int, value: int) -> int:
        """Nanoseconds at which a word reached `value`; at the deadline the worker dies and our stream is set free."""
        deadline = time.perf_counter_ns() + int(DEADLINE_S * 1e9)
        while words[word] < value:
            if time.perf_counter_ns() > deadline:
                worker.kill()
                worker.shared.words[0] = 2**30  # GEQ compares in a circle, so not higher
                self.torch_stream.synchronize()
                raise WorkerFailed(
                    f"call {worker.next} was not done within {DEADLINE_S:g} s; killed, the judge's stream is free"
                )
        return time.perf_counter_ns()

    def verify(self, worker: Worker, contents: Contents, calls: int = CALLS) -> tuple[float, float, float, int]:
        """Replay the last block's contents and compare every output: worst errors and how many calls were wrong."""
        rows = []
        for slot in range(calls):
            contents.refresh(worker.next - calls + slot, self.stream)
            rows.append(contents.errors(slot))
        wrong = sum(not (norm <= NORM_LIMIT and lse <= LSE_LIMIT and ok) for norm, _, lse, ok in rows)
        return max(r[0] for r in rows), max(r[1] for r in rows), max(r[2] for r in rows), wrong
