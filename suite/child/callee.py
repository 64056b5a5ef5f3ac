"""The candidate as something to call: a C symbol or a Python function, with its arguments laid over shared memory."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import sys

import torch

MEMORY: dict = {}
"""The maps of this one-candidate process: input (read-only) and output."""
C_SCALARS = {
    "float32": ctypes.c_float,
    "float16": ctypes.c_float,
    "bfloat16": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "int16": ctypes.c_int16,
    "int8": ctypes.c_int8,
    "bool": ctypes.c_bool,
}


class Wrong(Exception):
    """The candidate is not what was asked for: a status of wire.FAILURES, and why."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Kernel:
    """One loaded candidate. `call` is rebuilt by every `configure`, so that a timed call does nothing but call."""

    def __init__(self, order: dict) -> None:
        self.order = order
        self.function = None
        self.call = None

    def load(self) -> None:
        file, _, symbol = self.order["entry_point"].partition("::")
        if self.order["language"] == "cpp":
            self.function = _load_library(self.order["artifact"], symbol)
        else:
            self.function = _load_module(self.order["artifact"], file, symbol)

    def configure(self, arguments: list[dict]) -> None:
        if self.order["language"] == "cpp":
            self.call = _c_call(self.function, arguments)
        else:
            self.call = _python_call(self.function, arguments, self.order["destination_passing_style"])


def _load_library(path: str, symbol: str):
    try:
        function = getattr(ctypes.CDLL(path), symbol)
    except OSError as error:
        raise Wrong("COMPILE_ERROR", f"the library can't be loaded: {error}") from None
    except AttributeError:
        raise Wrong("COMPILE_ERROR", f'the library has no symbol {symbol}: is it declared extern "C"?') from None
    function.restype = ctypes.c_int
    return function


def _load_module(folder: str, file: str, symbol: str):
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    path = os.path.join(folder, file)
    # Not its own name, which may be that of a module the standard library needs.
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise Wrong("COMPILE_ERROR", f"SyntaxError: {error}") from None
    function = getattr(module, symbol, None)
    if not callable(function):
        raise Wrong("COMPILE_ERROR", f"{file} defines no function {symbol}")
    return function


def _tensor(argument: dict) -> torch.Tensor:
    dtype = getattr(torch, argument["dtype"])
    count = math.prod(argument["shape"])
    if count == 0:
        return torch.empty(argument["shape"], dtype=dtype)
    flat = torch.frombuffer(MEMORY[argument["kind"]], dtype=dtype, count=count, offset=argument["offset"])
    return flat.view(argument["shape"])


def _c_call(function, arguments: list[dict]):
    passed = []
    for argument in [*(a for a in arguments if a["kind"] != "axis"), *(a for a in arguments if a["kind"] == "axis")]:
        if argument["kind"] == "axis":
            passed.append(ctypes.c_int64(argument["value"]))
        elif argument["kind"] == "scalar":
            passed.append(C_SCALARS[argument["dtype"]](argument["value"]))
        else:
            passed.append(ctypes.c_void_p(_tensor(argument).data_ptr()))

    def call() -> None:
        code = function(*passed)
        if code:
            raise Wrong("RUNTIME_ERROR", f"returned {code} instead of 0")

    return call


def _python_call(function, arguments: list[dict], destination_passing: bool):
    inputs = [
        a["value"] if a["kind"] == "scalar" else _tensor(a) for a in arguments if a["kind"] in ("input", "scalar")
    ]
    wanted = [(a["name"], _tensor(a)) for a in arguments if a["kind"] == "output"]
    outputs = [tensor for _, tensor in wanted]
    if destination_passing:
        passed = [*inputs, *outputs]
        return lambda: function(*passed)

    def call() -> None:
        _store(function(*inputs), wanted)

    return call


def _store(returned, wanted: list[tuple[str, torch.Tensor]]) -> None:
    """Check what a value-returning candidate returned, and copy it where the judge reads it."""
    if type(returned) not in (tuple, list):
        returned = (returned,)
    if len(returned) != len(wanted):
        raise Wrong("INCORRECT_SHAPE", f"returned {len(returned)} values instead of {len(wanted)}")
    for value, (name, output) in zip(returned, wanted, strict=True):
        if value is None:
            raise Wrong("RUNTIME_ERROR", f"returned nothing for {name}")
        # A subclass could compute when it is read: only the plain thing is a result.
        if type(value) is not torch.Tensor:
            raise Wrong("INCORRECT_DTYPE", f"{name} is a {type(value).__name__}, not a torch.Tensor")
        if value.dtype != output.dtype:
            raise Wrong("INCORRECT_DTYPE", f"{name} is {value.dtype} instead of {output.dtype}")
        if value.shape != output.shape:
            raise Wrong("INCORRECT_SHAPE", f"{name} is {tuple(value.shape)} instead of {tuple(output.shape)}")
        output.copy_(value.detach())
