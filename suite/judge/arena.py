"""Memory that judge and children share: sealed inputs, outputs between red zones, and where each argument lies.

The judge maps a memfd for writing and then seals it against every later writable map, so that a child can map inputs
only for reading. The other order, or F_SEAL_WRITE, would lock the judge out as well. Outputs can be written by their
child; they are sealed against resizing only, or a child could shrink the file and kill the judge by SIGBUS.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import torch

from suite.types import Definition, DType, TensorSpec

F_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h; the fcntl module learns the name in Python 3.13
FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
PAGE = 4096
RED_ZONE = 4096
UNWRITTEN = 0xFF
"""Byte of memory nobody has written: a NaN in every float format, -1 in every integer."""
ZONE_BYTE = b"\xa5"


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype of the same name."""
    found = getattr(torch, dtype.value)
    assert isinstance(found, torch.dtype)
    return found


@dataclass(frozen=True)
class Slot:
    """A tensor's place in a memfd, bytes from its start; C order, page-aligned."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int

    @property
    def count(self) -> int:
        return torch.Size(self.shape).numel()

    @property
    def end(self) -> int:
        return self.offset + self.count * self.dtype.size


@dataclass(frozen=True)
class Layout:
    """Where the tensors of one workload lie. `scalars` are the names of the inputs that are no tensors."""

    inputs: tuple[Slot, ...]
    scalars: tuple[str, ...]
    outputs: tuple[Slot, ...]

    @property
    def input_bytes(self) -> int:
        return _page_after(self.inputs[-1].end if self.inputs else 0)

    @property
    def output_bytes(self) -> int:
        return _page_after(self.outputs[-1].end + RED_ZONE)

    def zones(self) -> Iterator[tuple[int, int]]:
        """Start and end of every stretch of the output file that belongs to no output."""
        start = 0
        for slot in self.outputs:
            yield start, slot.offset
            start = slot.end
        yield start, self.output_bytes


def lay_out(definition: Definition, axes: Mapping[str, int]) -> Layout:
    """Places for a workload's tensors, in order of definition, with a red zone before and after each."""
    tensors = {name: spec for name, spec in definition.inputs.items() if spec.shape is not None}
    return Layout(
        inputs=tuple(_place(tensors, definition, axes)),
        scalars=tuple(name for name, spec in definition.inputs.items() if spec.shape is None),
        outputs=tuple(_place(definition.outputs, definition, axes)),
    )


def _place(specs: Mapping[str, TensorSpec], definition: Definition, axes: Mapping[str, int]) -> Iterator[Slot]:
    offset = RED_ZONE
    for name, spec in specs.items():
        slot = Slot(name, spec.dtype, definition.shape(spec, dict(axes)), offset)
        yield slot
        offset = _page_after(slot.end + RED_ZONE)


def _page_after(offset: int) -> int:
    return -(-max(offset, 1) // PAGE) * PAGE


class Arena:
    """One memfd and the judge's writable map of it."""

    def __init__(self, name: str, size: int, seals: int) -> None:
        self.size = size
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        self._map = mmap.mmap(self.fd, size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals | FIXED_SIZE)
        self._bytes = torch.frombuffer(self._map, dtype=torch.uint8)
        self._bytes.fill_(UNWRITTEN)

    def view(self, slot: Slot) -> torch.Tensor:
        """The slot as a tensor over the shared memory, of the slot's shape and dtype."""
        return self._bytes[slot.offset : slot.end].view(torch_dtype(slot.dtype)).view(slot.shape)

    def close(self) -> None:
        """Give up the descriptor; the map lives until the last view of it is gone."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InputArena(Arena):
    """Inputs: written by the judge at any time, mapped by children for reading only."""

    def __init__(self, size: int) -> None:
        super().__init__("inputs", size, F_SEAL_FUTURE_WRITE)


class OutputArena(Arena):
    """Outputs of one child. The judge fills them before a call and reads them after it."""

    def __init__(self, size: int) -> None:
        super().__init__("outputs", size, 0)

    def reset(self, layout: Layout) -> None:
        """Before a call: nothing written, red zones intact."""
        for slot in layout.outputs:
            self._bytes[slot.offset : slot.end].fill_(UNWRITTEN)
        for start, end in layout.zones():
            self._map[start:end] = ZONE_BYTE * (end - start)

    def outputs(self, layout: Layout) -> dict[str, torch.Tensor]:
        """Views of the outputs by name; they change with the next call."""
        return {slot.name: self.view(slot) for slot in layout.outputs}

    def trespass(self, layout: Layout) -> str:
        """Words for the first write outside the outputs, empty if there is none."""
        names = ["the first output", *(slot.name for slot in layout.outputs)]
        for index, (start, end) in enumerate(layout.zones()):
            zone = self._map[start:end]
            if zone != ZONE_BYTE * len(zone):
                changed = len(zone) - zone.count(ZONE_BYTE)
                where = f"after {names[index]}" if index else f"before {names[1]}"
                return f"{changed} bytes {where} were written; they belong to no output"
        return ""

    def unwritten(self, slot: Slot) -> int:
        """How many elements of an output still hold nothing but the bytes of memory nobody has written."""
        rows = self._bytes[slot.offset : slot.end].view(slot.count, slot.dtype.size) if slot.count else self._bytes[:0]
        return int((rows == UNWRITTEN).all(dim=-1).sum()) if slot.count else 0
