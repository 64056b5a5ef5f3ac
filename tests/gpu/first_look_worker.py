"""The worker's side of first_look.py: ROUGH, a first cut to learn from, to be replaced by the sm90 lane's child.

Started as a zygote that imports torch and Triton but never touches CUDA; forks one worker per order. A worker maps
what the judge hands it as file descriptors (inputs and flag read-only), loads the candidate and queues its calls, each
behind a wait on the judge's flag. Everything it says is a claim. There is no sandbox yet.
"""

from __future__ import annotations

import array
import ctypes
import importlib.util
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch
import triton
from cuda.bindings import driver as cu

REPLY = struct.Struct("<iI240s64d")
"""Status (0 good), number of times, text, times: the only thing that goes up. Fixed size, checked by the judge."""
MAX_FDS = 4
PAGE = 4096
GEQ = int(cu.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ)
NULL_PTX = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n\0"


def check(answer: Any) -> Any:
    """A driver call's results without its error code, which must be success."""
    error, *rest = answer
    if error != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"driver: {error.name}")
    return rest[0] if rest else None


def enter_context() -> Any:
    """Make the device's primary context (torch's too) current in this process; returns the device."""
    check(cu.cuInit(0))
    device = check(cu.cuDeviceGet(0))
    check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(device))))
    torch.cuda.init()  # type: ignore[no-untyped-call]
    return device


def null_kernel() -> Callable[[Any], None]:
    """A function that launches an empty kernel on a stream."""
    function = check(cu.cuModuleGetFunction(check(cu.cuModuleLoadData(NULL_PTX)), b"nothing"))
    return lambda stream: check(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0))


def map_device_memory(handle: Any, size: int, writable: bool) -> int:
    """Map a physical allocation at an address the driver picks; returns the address."""
    address = check(cu.cuMemAddressReserve(size, 0, 0, 0))
    check(cu.cuMemMap(address, size, 0, handle, 0))
    access = cu.CUmemAccessDesc()
    access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = 0
    flags = cu.CUmemAccess_flags
    access.flags = flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE if writable else flags.CU_MEM_ACCESS_FLAGS_PROT_READ
    check(cu.cuMemSetAccess(address, size, [access], 1))
    return int(address)


def view(address: int, shape: list[int], dtype: str) -> torch.Tensor:
    """A tensor over device memory that torch does not own. numpy's protocol has no bfloat16, so integers are viewed."""
    if 0 in shape:
        return torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")
    size = {"bfloat16": 2, "float16": 2, "int32": 4, "float32": 4}[dtype]
    code = {2: "<i2", 4: "<i4"}[size]
    holder = type("Foreign", (), {})()
    holder.__cuda_array_interface__ = {"shape": tuple(shape), "typestr": code, "data": (address, False), "version": 3}
    tensor: torch.Tensor = torch.as_tensor(holder, device="cuda").view(getattr(torch, dtype))
    assert tensor.data_ptr() == address
    return tensor


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next order and the file descriptors that came with it; an empty order at end of file."""
    fds = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(65536, socket.CMSG_SPACE(MAX_FDS * fds.itemsize))
    for _, _, payload in ancillary:
        fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return (json.loads(data) if data else {}), list(fds)


class Worker:
    """One forked process: one context, one candidate, one channel."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.depth = 2  # calls queued ahead of `done`

    def serve(self) -> None:
        while True:
            order, fds = receive(self.channel)
            if not order:
                return
            status, text, times = 0, "", []
            try:
                text, times = getattr(self, "do_" + order.pop("do"))(fds, **order)
            except Exception as error:  # noqa: BLE001  top level of a child: every ending is told upwards
                status, text = 1, f"{type(error).__name__}: {error}"
            self.channel.send(REPLY.pack(status, len(times), text.encode()[:240], *times, *[0.0] * (64 - len(times))))

    def do_start(self, fds: list[int], core: int, candidate: str, channel_only: bool) -> tuple[str, list[float]]:
        """Open the context, map flag and done pages, import the candidate unless `channel_only`; seconds of each."""
        os.sched_setaffinity(0, {core})
        t0 = time.perf_counter()
        enter_context()
        t1 = time.perf_counter()
        self.flag_map = mmap.mmap(fds[0], PAGE, prot=mmap.PROT_READ)
        self.done_map = mmap.mmap(fds[1], PAGE)
        flag_address, done_address = address_of(self.flag_map), address_of(self.done_map)
        check(
            cu.cuMemHostRegister(flag_address, PAGE, cu.CU_MEMHOSTREGISTER_DEVICEMAP | cu.CU_MEMHOSTREGISTER_READ_ONLY)
        )
        check(
            cu.cuMemHostRegister(done_address, PAGE, cu.CU_MEMHOSTREGISTER_DEVICEMAP | cu.CU_MEMHOSTREGISTER_PORTABLE)
        )
        self.flag = check(cu.cuMemHostGetDevicePointer(flag_address, 0))
        self.done = check(cu.cuMemHostGetDevicePointer(done_address, 0))
        self.words = memoryview(self.done_map).cast("I")
        self.torch_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.stream = cu.CUstream(self.torch_stream.cuda_stream)
        self.launch_null = null_kernel()
        self.call: Callable[[], None] = lambda: self.launch_null(self.stream)
        t2 = time.perf_counter()
        if not channel_only:
            spec = importlib.util.spec_from_file_location("candidate", candidate)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.function = module.run
        return "", [t1 - t0, t2 - t1, time.perf_counter() - t2]

    def do_map(self, fds: list[int], sizes: list[int], arguments: list[dict[str, Any]]) -> tuple[str, list[float]]:
        """Map inputs (read-only) and outputs, make one ungated warm call; seconds of the mapping and of the call."""
        t0 = time.perf_counter()
        bases = []
        for fd, size, writable in zip(fds, sizes, (False, True), strict=True):
            handle_type = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
            bases.append(map_device_memory(check(cu.cuMemImportFromShareableHandle(fd, handle_type)), size, writable))
            os.close(fd)
        values = [
            argument["value"]
            if argument["kind"] == "scalar"
            else view(bases[argument["kind"] == "output"] + argument["offset"], argument["shape"], argument["dtype"])
            for argument in arguments
        ]
        self.call = lambda: self.function(*values)
        t1 = time.perf_counter()
        with torch.cuda.stream(self.torch_stream):
            self.call()
        self.torch_stream.synchronize()
        return "", [t1 - t0, time.perf_counter() - t1]

    def do_block(self, _: list[int], first: int, calls: int, how: str, nulls: int) -> tuple[str, list[float]]:
        """Queue `calls` calls numbered from `first`, of the candidate or (nulls >= 0) of so many null kernels.

        `how`: "bare"; "events" around each call; "traced" by CUPTI. Returns microseconds of each call, if known.
        """
        call = self.call if nulls < 0 else lambda: [self.launch_null(self.stream) for _ in range(nulls)]
        if how == "traced":
            activities = [torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=activities) as trace:
                self.queue(first, calls, call, [])
            return "", spans(trace, calls)
        pairs = [event_pair() for _ in range(calls)]
        self.queue(first, calls, call, pairs if how == "events" else [])
        return "", [1e3 * begin.elapsed_time(end) for begin, end in pairs] if how == "events" else []

    def queue(self, first: int, calls: int, call: Callable[[], Any], pairs: list[Any]) -> None:
        with torch.cuda.stream(self.torch_stream):
            for index in range(calls):
                k = first + index
                while k - self.words[0] > self.depth:
                    pass
                check(cu.cuStreamWaitValue32(self.stream, self.flag, k, GEQ))
                if pairs:
                    pairs[index][0].record()
                call()
                if pairs:
                    pairs[index][1].record()
                check(cu.cuStreamWriteValue32(self.stream, self.done, k, 0))
                self.words[1] = k  # ready
        self.torch_stream.synchronize()

    def do_trace(self, _: list[int]) -> tuple[str, list[float]]:
        """Start CUPTI once, so that a traced block does not pay for it."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
            self.call()
            torch.cuda.synchronize()
        return "", []

    def do_attack_flag(self, fds: list[int]) -> tuple[str, list[float]]:
        """Try to get the flag page writable on the CPU; says how each way ended."""
        ways: dict[str, Callable[[], Any]] = {
            "mmap(RW)": lambda: mmap.mmap(fds[0], PAGE),
            "write()": lambda: os.pwrite(fds[0], b"\xff", 0),
        }
        told = [f"{name}: {outcome(way)}" for name, way in ways.items()]
        libc = ctypes.CDLL(None, use_errno=True)
        rc = libc.mprotect(ctypes.c_void_p(address_of(self.flag_map)), PAGE, mmap.PROT_READ | mmap.PROT_WRITE)
        told.append(f"mprotect(RW): {'allowed' if rc == 0 else os.strerror(ctypes.get_errno())}")
        return "; ".join(told), []

    def do_attack_stream_write(self, _: list[int]) -> tuple[str, list[float]]:
        """Try a stream write to the flag, which would release this worker early; it costs the context."""
        check(cu.cuStreamWriteValue32(self.stream, self.flag, 2**30, 0))
        check(cu.cuStreamSynchronize(self.stream))
        return "allowed", []


def event_pair() -> tuple[torch.cuda.Event, torch.cuda.Event]:
    """Two timing events of torch's."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    return begin, end


def spans(trace: Any, calls: int) -> list[float]:
    """Microseconds from the start of each call's first kernel to the end of its last, by CUPTI."""
    device = [e for e in trace.events() if e.device_type.name == "CUDA" and not e.name.startswith("Mem")]
    kernels = sorted((e.time_range.start, e.time_range.end) for e in device)
    each = len(kernels) // calls
    if each == 0 or each * calls != len(kernels):
        return []  # not understood: no claim
    groups = [kernels[each * i : each * (i + 1)] for i in range(calls)]
    return [group[-1][1] - group[0][0] for group in groups]


def outcome(way: Callable[[], Any]) -> str:
    """'allowed', or the error."""
    try:
        way()
    except OSError as error:
        return error.strerror or "refused"
    return "allowed"


def address_of(mapping: mmap.mmap) -> int:
    """Address of a mapping; by way of numpy because ctypes refuses read-only buffers and torch warns of them."""
    return int(numpy.frombuffer(mapping, dtype=numpy.uint8).ctypes.data)


def prewarm() -> None:
    """What Triton does once a process and needs no GPU for: hash itself and its tools, build its driver helper."""
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.backends.nvidia.compiler import CUDABackend  # noqa: PLC0415
    from triton.backends.nvidia.driver import CudaUtils  # noqa: PLC0415

    triton.runtime.cache.triton_key()
    CUDABackend(GPUTarget("cuda", 90, 32)).hash()
    CudaUtils()


def main() -> None:
    """Zygote: `python first_look_worker.py SOCKET_FD`; every message carries the socket of a worker to fork."""
    control = socket.socket(fileno=int(sys.argv[1]))
    prewarm()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # dead workers are reaped by the kernel
    assert not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    control.send(struct.pack("<i", len(os.listdir("/proc/self/task"))))
    while True:
        order, fds = receive(control)
        if not order:
            return
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a candidate's own compilers must be waited for
            control.close()
            Worker(socket.socket(fileno=fds[0])).serve()
            os._exit(0)
        os.close(fds[0])
        control.send(struct.pack("<i", pid))


if __name__ == "__main__":
    main()
