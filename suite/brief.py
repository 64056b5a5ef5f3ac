"""Writes the brief: the one text about a task that every method shows its model. Deterministic, and blind to secrets.

It names no check shape, no tolerance and no held-out workload: what is not here, a search cannot fit itself to.
"""

from __future__ import annotations

from collections.abc import Mapping

from suite.types import Definition, DType, Language, Split, Task, TensorSpec

_C_TYPES = {
    DType.FLOAT32: "float",
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    DType.FLOAT8_E4M3FN: "uint8_t",
    DType.FLOAT8_E5M2: "uint8_t",
    DType.INT64: "int64_t",
    DType.INT32: "int32_t",
    DType.INT16: "int16_t",
    DType.INT8: "int8_t",
    DType.BOOL: "uint8_t",
}
_FENCE = {Language.CPP: "cpp", Language.CUDA: "cuda", Language.PYTHON: "python", Language.TRITON: "python"}
_WIDTH = 110

_C_ENTRY = """\
One source file that defines exactly this function:

```{fence}
{prototype}
```

Tensors are dense and row-major and start at multiples of 64 bytes; half-precision and 8-bit floats come as raw bits.
The axes that vary follow the arguments, in order of definition. Return 0; anything else is an error of the kernel."""

_PYTHON_ENTRY = """\
One source file that defines this function:

```python
{signature}
```

Arguments are dense torch tensors, scalars are Python numbers. Write the results into the output tensors, in place. (A
kernel submitted as value-returning is called as `run({inputs})` and returns the outputs in order.)"""

_SHAPES = """\
Any other admissible shape may be asked as well, the smallest and the emptiest included: a kernel is checked on
undisclosed ones every time, and the best one of a search is timed again on shapes that nobody has seen."""

_TIMED = """\
One call of the function, from its start to its return, on fresh contents at unchanged addresses and with cold caches.
The first call of each shape is not timed. A call that takes more than {timeout_s:g} s fails. The score is the geometric
mean over the workloads of (time of the expert baseline / time of the kernel), the two measured in turn on the same
contents; one wrong or failing workload makes it 0."""

_RIGHT = """\
Outputs are compared with a reference computed in float32, and after every timed call with the baseline's. The tolerance
covers what rounding to the output type and another order of summation explain; to leave out work, terms or precision is
beyond it, over all and in every single slice. Infinities and NaN must stand exactly where the reference has them. Every
element of every output must be written in every call, and nothing outside the outputs."""

_COMPILED = {
    Language.CPP: (
        "Compiled by `g++ -O3 -march=native -fopenmp -std=c++20 -shared -fPIC`, the common standard headers included "
        "beforehand; standard library, intrinsics and OpenMP, no other libraries. Use OpenMP for threads: the cores "
        "are bound to its threads, all others share one."
    ),
    Language.CUDA: "Compiled by nvcc for this device; the CUDA runtime, no other libraries.",
    Language.PYTHON: "torch and the standard library; import at the top of the file.",
    Language.TRITON: "Triton and torch; the work must be done by Triton kernels.",
}

_RULES = """\
- The kernel runs in a closed process of its own: no network, no files, no other processes.
- Inputs are read-only. When a call returns, its work is done: no thread may go on computing.
- No input, result or fingerprint of one may be kept from call to call; scratch memory and idle threads may.
- Reading it is enough to refuse a kernel that includes files by absolute path, starts processes, loads libraries, or
  looks into other frames, objects or /proc."""


def brief(task: Task, language: Language) -> str:
    """The text for `task` with candidates in `language`."""
    definition = task.definition
    sections = (
        f"# {task.title}\n\nWrite the fastest correct kernel you can for the task below, in {_called(language)}.",
        f"## What must be computed\n\n{definition.description.strip()}{_constraints(definition)}",
        f"## What you write\n\n{_entry_point(definition, language)}",
        f"## Arguments\n\n{_arguments(definition)}\n\n{_axes(definition)}",
        f"## Workloads\n\n{_workloads(task)}",
        f"## What is timed\n\n{_timed(task)}",
        f"## What is right\n\n{_RIGHT}",
        f"## Rules\n\n{_rules(language)}",
        f"## Hints\n\n{task.hints.strip()}" if task.hints.strip() else "",
    )
    return "\n\n".join(section for section in sections if section) + "\n"


def c_prototype(definition: Definition, symbol: str = "run") -> str:
    """The exact C declaration of a kernel: inputs, outputs, then the var axes, all in order of definition."""
    parameters = [_c_parameter(name, spec, constant=True) for name, spec in definition.inputs.items()]
    parameters += [_c_parameter(name, spec, constant=False) for name, spec in definition.outputs.items()]
    parameters += [f"int64_t {name}" for name in definition.var_axes()]
    return _wrapped(f'extern "C" int {symbol}(', parameters, ");")


def python_signature(definition: Definition, symbol: str = "run") -> str:
    """The `def` line of a destination-passing kernel."""
    return _wrapped(f"def {symbol}(", [*definition.inputs, *definition.outputs], "):")


def _c_parameter(name: str, spec: TensorSpec, *, constant: bool) -> str:
    scalar = _C_TYPES[spec.dtype]
    if spec.shape is None and constant:
        return f"{scalar} {name}"
    return f"{'const ' if constant else ''}{scalar}* {name}"


def _wrapped(head: str, parameters: list[str], tail: str) -> str:
    """On one line if it fits, else filled lines with an indent of four."""
    if len(head) + len(", ".join(parameters)) + len(tail) <= _WIDTH:
        return head + ", ".join(parameters) + tail
    lines, current = [head], "   "
    for index, parameter in enumerate(parameters):
        piece = f" {parameter}{',' if index + 1 < len(parameters) else tail}"
        if len(current) + len(piece) > _WIDTH:
            lines.append(current)
            current = "   "
        current += piece
    return "\n".join([*lines, current])


def _called(language: Language) -> str:
    return {"cpp": "C++20", "cuda": "CUDA C++", "python": "Python with torch", "triton": "Triton"}[language]


def _constraints(definition: Definition) -> str:
    if not definition.constraints:
        return ""
    return "\n\nAlways true of the inputs: " + "; ".join(f"`{one}`" for one in definition.constraints) + "."


def _entry_point(definition: Definition, language: Language) -> str:
    if language in (Language.CPP, Language.CUDA):
        return _C_ENTRY.format(fence=_FENCE[language], prototype=c_prototype(definition))
    return _PYTHON_ENTRY.format(signature=python_signature(definition), inputs=", ".join(definition.inputs))


def _arguments(definition: Definition) -> str:
    rows = ["| argument | shape | type | meaning |", "|---|---|---|---|"]
    for role, arguments in (("input", definition.inputs), ("output", definition.outputs)):
        for name, spec in arguments.items():
            shape = "scalar" if spec.shape is None else f"[{', '.join(spec.shape)}]"
            rows.append(f"| `{name}` ({role}) | {shape} | {spec.dtype} | {spec.description or ''} |")
    return "\n".join(rows)


def _axes(definition: Definition) -> str:
    rows = ["| axis | value | meaning |", "|---|---|---|"]
    for name, axis in definition.axes.items():
        value = "varies" if axis.value is None else str(axis.value)
        rows.append(f"| `{name}` | {value} | {axis.description or ''} |")
    return "\n".join(rows)


def _workloads(task: Task) -> str:
    lines = ["You are scored on these; each is timed:", ""]
    for workload in task.split(Split.SEARCH):
        lines.append(f"- {_pairs(workload.axes)}{_params(workload.params)}")
    return "\n".join([*lines, "", _SHAPES])


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _params(params: Mapping[str, object]) -> str:
    return f" ({_pairs(params)})" if params else ""


def _timed(task: Task) -> str:
    return _TIMED.format(timeout_s=task.timeout_s)


def _rules(language: Language) -> str:
    return f"- {_COMPILED[language]}\n{_RULES}"
