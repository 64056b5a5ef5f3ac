"""Children can read inputs and write outputs, and nothing else of the shared memory."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from suite.judge.arena import PAGE, RED_ZONE, InputArena, Layout, OutputArena, Slot, lay_out, torch_dtype
from suite.types import Axis, Definition, DType, TensorSpec


def definition(inputs: dict[str, TensorSpec], outputs: dict[str, TensorSpec]) -> Definition:
    axes = {"n": Axis(type="var"), "d": Axis(type="const", value=3)}
    return Definition(name="t", op_type="t", axes=axes, inputs=inputs, outputs=outputs, reference="")


def tensor(dtype: DType, *shape: str) -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


EXAMPLE = definition(
    {"x": tensor(DType.BFLOAT16, "n", "d"), "scale": TensorSpec(shape=None, dtype=DType.FLOAT32)},
    {"out": tensor(DType.BFLOAT16, "n", "d"), "sums": tensor(DType.FLOAT32, "n")},
)
LAYOUT = lay_out(EXAMPLE, {"n": 5})


def test_arguments_lie_in_order_on_pages_of_their_own() -> None:
    assert [slot.name for slot in LAYOUT.inputs] == ["x"]
    assert LAYOUT.scalars == ("scale",)
    assert [slot.shape for slot in LAYOUT.outputs] == [(5, 3), (5,)]
    assert all(slot.offset % PAGE == 0 for slot in (*LAYOUT.inputs, *LAYOUT.outputs))


@given(st.lists(st.sampled_from(list(DType)), min_size=1, max_size=5), st.integers(0, 5000))
def test_zones_and_outputs_tile_the_file_with_a_red_zone_between_any_two(dtypes: list[DType], n: int) -> None:
    outputs = {f"o{index}": tensor(dtype, "n") for index, dtype in enumerate(dtypes)}
    layout = lay_out(definition({}, outputs), {"n": n})
    zones = list(layout.zones())
    edges = [edge for zone, slot in zip(zones, layout.outputs, strict=False) for edge in (*zone, slot.offset, slot.end)]
    assert zones[0][0] == 0 and zones[-1][1] == layout.output_bytes
    assert edges == sorted(edges)
    assert all(end - start >= RED_ZONE for start, end in zones)


@pytest.mark.parametrize("dtype", list(DType))
def test_a_view_has_the_slots_shape_and_dtype(dtype: DType) -> None:
    with InputArena(2 * PAGE) as arena:
        for shape in ((2, 3), (), (0, 4)):
            view = arena.view(Slot("x", dtype, shape, PAGE))
            assert view.shape == shape
            assert view.dtype == torch_dtype(dtype)
            assert view.element_size() == dtype.size


def test_the_judge_goes_on_writing_inputs_after_the_seal_and_others_see_it() -> None:
    with InputArena(LAYOUT.input_bytes) as arena:
        slot = LAYOUT.inputs[0]
        arena.view(slot).fill_(2.5)
        other = mmap.mmap(arena.fd, arena.size, prot=mmap.PROT_READ)
        raw = bytes(other[slot.offset : slot.end])
        assert torch.frombuffer(bytearray(raw), dtype=torch.bfloat16).tolist() == [2.5] * 15


def test_nobody_maps_or_writes_inputs_after_the_seal() -> None:
    with InputArena(PAGE) as arena:
        with pytest.raises(PermissionError):
            mmap.mmap(arena.fd, arena.size)
        for attempt in (lambda: os.pwrite(arena.fd, b"x", 0), lambda: os.ftruncate(arena.fd, 0)):
            with pytest.raises(OSError) as caught:
                attempt()
            assert caught.value.errno == errno.EPERM
        reopened = os.open(f"/proc/self/fd/{arena.fd}", os.O_RDWR)
        try:
            with pytest.raises(PermissionError):
                mmap.mmap(reopened, arena.size)
        finally:
            os.close(reopened)


def test_outputs_can_be_mapped_for_writing_but_not_shrunk_under_the_judge() -> None:
    with OutputArena(LAYOUT.output_bytes) as arena:
        mmap.mmap(arena.fd, arena.size)[0] = 1
        for size in (0, 2 * arena.size):
            with pytest.raises(PermissionError):
                os.ftruncate(arena.fd, size)


def test_the_judges_own_views_outlive_the_arena() -> None:
    with InputArena(LAYOUT.input_bytes) as arena:
        view = arena.view(LAYOUT.inputs[0]).fill_(1.0)
    assert view.sum() == 15


def written(layout: Layout) -> OutputArena:
    arena = OutputArena(layout.output_bytes)
    arena.reset(layout)
    return arena


def test_after_a_reset_every_element_is_unwritten_and_no_float_is_a_number() -> None:
    with written(LAYOUT) as arena:
        assert [arena.unwritten(slot) for slot in LAYOUT.outputs] == [15, 5]
        assert all(bool(torch.isnan(output).all()) for output in arena.outputs(LAYOUT).values())


def test_written_elements_are_counted_off() -> None:
    with written(LAYOUT) as arena:
        arena.outputs(LAYOUT)["out"][:2] = 0.0
        assert [arena.unwritten(slot) for slot in LAYOUT.outputs] == [9, 5]
        arena.reset(LAYOUT)
        assert arena.unwritten(LAYOUT.outputs[0]) == 15


def test_an_empty_output_is_never_unwritten() -> None:
    layout = lay_out(EXAMPLE, {"n": 0})
    with written(layout) as arena:
        assert [arena.unwritten(slot) for slot in layout.outputs] == [0, 0]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (lambda: LAYOUT.outputs[0].offset - 1, "1 bytes before out"),
        (lambda: LAYOUT.outputs[0].end, "1 bytes after out"),
        (lambda: LAYOUT.outputs[1].offset - 1, "1 bytes after out"),
        (lambda: LAYOUT.output_bytes - 1, "1 bytes after sums"),
    ],
)
def test_a_write_outside_the_outputs_is_named(place: object, words: str) -> None:
    assert callable(place)
    with written(LAYOUT) as arena:
        assert arena.trespass(LAYOUT) == ""
        mmap.mmap(arena.fd, arena.size)[place()] = 0
        assert arena.trespass(LAYOUT).startswith(words)
        arena.reset(LAYOUT)
        assert arena.trespass(LAYOUT) == ""


def test_closing_gives_up_the_descriptor() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with InputArena(PAGE), OutputArena(PAGE):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before
