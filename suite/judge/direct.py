"""Calls a trusted kernel in this process: for calibration and the tests of tasks, never for a candidate."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from suite.errors import InfraError
from suite.judge.arena import torch_dtype
from suite.judge.build import Builder, BuildFailed
from suite.judge.course import Inputs, Outputs
from suite.types import Candidate, Definition, DType, Language

_SCALARS: Mapping[DType, Any] = {
    DType.FLOAT32: ctypes.c_float,
    DType.INT64: ctypes.c_int64,
    DType.INT32: ctypes.c_int32,
    DType.INT16: ctypes.c_int16,
    DType.INT8: ctypes.c_int8,
    DType.BOOL: ctypes.c_bool,
}

Kernel = Callable[[Inputs, Mapping[str, int]], Outputs]
"""From inputs and var axes to outputs, which were filled with NaN (integers: the lowest value) before the call."""


def load_kernel(definition: Definition, candidate: Candidate, builder: Builder) -> Kernel:
    """The candidate as a function. Raises `InfraError` if it does not build, later if it returns anything but 0."""
    if candidate.spec.language == Language.CPP:
        return _load_cpp(definition, candidate, builder)
    return _load_python(definition, candidate)


def _blank(definition: Definition, axes: Mapping[str, int]) -> Outputs:
    outputs = {}
    for name, spec in definition.outputs.items():
        dtype = torch_dtype(spec.dtype)
        filler = float("nan") if dtype.is_floating_point else 0 if dtype == torch.bool else torch.iinfo(dtype).min
        outputs[name] = torch.full(definition.shape(spec, dict(axes)), filler, dtype=dtype)
    return outputs


def _load_cpp(definition: Definition, candidate: Candidate, builder: Builder) -> Kernel:
    try:
        library = ctypes.CDLL(str(builder.build(candidate).path))
    except BuildFailed as failure:
        raise InfraError(f"{candidate.spec.entry_point} does not build: {failure.log}") from failure
    function = getattr(library, candidate.spec.entry_point.partition("::")[2])

    def call(inputs: Inputs, axes: Mapping[str, int]) -> Outputs:
        outputs = _blank(definition, axes)
        arguments: list[Any] = []
        for name, spec in definition.inputs.items():
            value = inputs[name]
            if isinstance(value, torch.Tensor):
                arguments.append(ctypes.c_void_p(value.data_ptr()))
            else:
                arguments.append(_SCALARS[spec.dtype](value))
        arguments += [ctypes.c_void_p(output.data_ptr()) for output in outputs.values()]
        arguments += [ctypes.c_int64(axes[name]) for name in definition.var_axes()]
        if code := function(*arguments):
            raise InfraError(f"{candidate.spec.entry_point} returned {code}")
        return outputs

    return call


def _load_python(definition: Definition, candidate: Candidate) -> Kernel:
    path, _, symbol = candidate.spec.entry_point.partition("::")
    namespace: dict[str, Any] = {"__name__": path.removesuffix(".py")}
    exec(compile(candidate.text(path), path, "exec"), namespace)
    function = namespace[symbol]
    assert inspect.isfunction(function), f"{symbol} of {path} is a function"

    def call(inputs: Inputs, axes: Mapping[str, int]) -> Outputs:
        if candidate.spec.destination_passing_style:
            outputs = _blank(definition, axes)
            function(*inputs.values(), *outputs.values())
            return outputs
        returned = function(*inputs.values())
        values = (returned,) if isinstance(returned, torch.Tensor) else returned
        return dict(zip(definition.outputs, values, strict=True))

    return call
