"""The two sides, each a process of its own: the candidate, whose failures are verdicts, and the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from suite.errors import InfraError, TaskError
from suite.judge.arena import Arena, InputArena, Layout, OutputArena, Slot, lay_out, torch_dtype
from suite.judge.build import Artifact
from suite.judge.channel import Argument, ChildFailed, SpawnOrder
from suite.judge.course import Inputs, Outputs
from suite.judge.zygote import Child, Zygote
from suite.types import Candidate, Definition, DType, Status, Workload


class Rejected(Exception):
    """The candidate failed: how it ended, and why in words a search can use."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(status, detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class Scene:
    """A workload whose contents lie in shared memory. `inputs` are views of it (and the scalars)."""

    workload: Workload
    layout: Layout
    inputs: Inputs
    arguments: tuple[Argument, ...]


def set_scene(definition: Definition, workload: Workload, arena: InputArena, contents: Inputs) -> Scene:
    """Copy contents into the arena. Raises `TaskError` if they have not the definition's shapes and dtypes."""
    layout = lay_out(definition, workload.axes)
    inputs = dict(contents)
    for slot in layout.inputs:
        inputs[slot.name] = _placed(slot, arena, contents[slot.name])
    return Scene(workload, layout, inputs, _arguments(definition, layout, inputs, workload.axes))


def _placed(slot: Slot, arena: Arena, tensor: torch.Tensor | float) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor) or tensor.shape != slot.shape or tensor.dtype != torch_dtype(slot.dtype):
        came = f"{tensor.dtype} {list(tensor.shape)}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise TaskError(
            f"inputs.py made {slot.name} as {came}",
            f"{slot.dtype} {list(slot.shape)} by the definition",
            "correct one of the two",
        )
    view = arena.view(slot)
    view.copy_(tensor)
    return view


def _arguments(definition: Definition, layout: Layout, inputs: Inputs, axes: Mapping[str, int]) -> tuple[Argument, ...]:
    """In the order of a call: inputs, outputs, axes. Of what is secret, the child learns nothing from these."""
    places = {slot.name: slot for slot in (*layout.inputs, *layout.outputs)}
    arguments = []
    for name, spec in definition.inputs.items():
        value = inputs[name]
        if isinstance(value, torch.Tensor):
            arguments.append(Argument(name, spec.dtype, places[name].shape, "input", places[name].offset))
        else:
            arguments.append(Argument(name, spec.dtype, (), "scalar", value=value))
    for name, spec in definition.outputs.items():
        arguments.append(Argument(name, spec.dtype, places[name].shape, "output", places[name].offset))
    arguments += [Argument(name, DType.INT64, (), "axis", value=axes[name]) for name in definition.var_axes()]
    return tuple(arguments)


class Side:
    """A running child with the outputs it writes. `trusted`: its failure is ours, not a verdict."""

    def __init__(self, child: Child, arena: OutputArena, trusted: bool) -> None:
        self.child, self.trusted = child, trusted
        self._arena = arena
        self._layout: Layout | None = None

    @contextmanager
    def _blame(self) -> Iterator[None]:
        try:
            yield
        except ChildFailed as failure:
            if self.trusted:
                raise InfraError(f"the baseline failed: {failure}") from failure
            raise Rejected(failure.status, failure.detail) from failure

    def load(self, deadline_s: float) -> None:
        with self._blame():
            self.child.load(deadline_s)

    def take(self, scene: Scene) -> None:
        """Be ready for calls with a scene; it runs until a call has ended or it is stopped."""
        self._layout = scene.layout
        with self._blame():
            self.child.configure(scene.arguments)

    def freeze(self) -> None:
        """Stop it until its next call."""
        with self._blame():
            self.child.freeze()

    def reset(self) -> None:
        """Before a call: mark the outputs as unwritten."""
        self._arena.reset(self.layout)

    def call(self, deadline_s: float) -> float:
        """Seconds of one round trip."""
        with self._blame():
            return self.child.call(deadline_s)

    def empty_call(self) -> float:
        with self._blame():
            return self.child.empty_call()

    @property
    def layout(self) -> Layout:
        assert self._layout is not None, "take a scene first"
        return self._layout

    def cpu_s(self) -> float:
        """CPU seconds of the process so far."""
        with self._blame():
            return self.child.cpu_s()

    def outputs(self) -> Outputs:
        """Views of what the last call wrote. Raises `Rejected` if it wrote elsewhere too."""
        if trespass := self._arena.trespass(self.layout):
            raise Rejected(Status.OUT_OF_BOUNDS, trespass)
        return self._arena.outputs(self.layout)

    def unwritten(self) -> str:
        """Words for elements the last call never wrote, empty if there are none."""
        counts = {slot.name: (self._arena.unwritten(slot), slot.count) for slot in self.layout.outputs}
        parts = [f"{left} of {count} elements of {name}" for name, (left, count) in counts.items() if left]
        return f"{' and '.join(parts)} were never written" if parts else ""


@dataclass(frozen=True)
class Memory:
    """What both sides of an evaluation share with the judge: one copy of the inputs, outputs for each."""

    inputs: InputArena
    candidate: OutputArena
    baseline: OutputArena


@contextmanager
def shared_memory(definition: Definition, workloads: tuple[Workload, ...]) -> Iterator[Memory]:
    """Room for the largest of the workloads."""
    layouts = [lay_out(definition, workload.axes) for workload in workloads]
    room, outputs = max(layout.input_bytes for layout in layouts), max(layout.output_bytes for layout in layouts)
    with InputArena(room) as inputs, OutputArena(outputs) as candidate, OutputArena(outputs) as baseline:
        yield Memory(inputs, candidate, baseline)


@dataclass(frozen=True)
class Program:
    """A built candidate."""

    source: Candidate
    artifact: Artifact


def spawn(zygote: Zygote, program: Program, inputs: InputArena, outputs: OutputArena, memory_bytes: int) -> Child:
    """A fresh process for a program, one thread for each of the zygote's cpus. Raises `InfraError`."""
    spec = program.source.spec
    order = SpawnOrder(
        language=spec.language,
        artifact=program.artifact.path,
        entry_point=spec.entry_point,
        destination_passing_style=spec.destination_passing_style,
        threads=len(zygote.cpus),
        input_fd=inputs.fd,
        output_fd=outputs.fd,
        input_bytes=inputs.size,
        output_bytes=outputs.size,
        memory_bytes=memory_bytes,
    )
    return zygote.spawn(order)
