"""An output is right exactly when its tolerance says so, whatever the values are."""

from __future__ import annotations

import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from suite.compare import Comparison, compare, worst
from suite.types import OutputTolerance

EXACT = OutputTolerance(rtol=0.0, atol=0.0)
PLAIN = OutputTolerance(rtol=0.0, atol=0.1, scaled=False)
NAN, INF = math.nan, math.inf


def row(*values: float) -> torch.Tensor:
    return torch.tensor([values])


def test_equal_tensors_pass_without_any_tolerance() -> None:
    assert compare(row(1.0, -2.0, 0.0), row(1.0, -2.0, 0.0), EXACT) == Comparison(ok=True)


def test_the_relative_part_scales_with_the_wanted_element() -> None:
    tolerance = OutputTolerance(rtol=0.1, atol=0.0, scaled=False)
    assert compare(row(109.0, 1.0), row(100.0, 1.0), tolerance).ok
    assert not compare(row(100.0, 1.2), row(100.0, 1.0), tolerance).ok


def test_the_scaled_floor_is_relative_to_the_rms_of_the_slice() -> None:
    tolerance = OutputTolerance(rtol=0.0, atol=0.1)
    want = torch.tensor([[100.0, 100.0], [1.0, 1.0]])
    assert compare(want + torch.tensor([[9.0], [0.0]]), want, tolerance).ok
    assert not compare(want + torch.tensor([[0.0], [9.0]]), want, tolerance).ok


def test_a_slice_is_one_index_of_the_leading_slice_axes() -> None:
    want = torch.ones(2, 2, 4)
    want[0, 0] = 1000.0
    got = want.clone()
    got[0, 1, 0] = 2.0
    by_first, by_both = (OutputTolerance(rtol=0.0, atol=0.1, slice_axes=axes) for axes in (1, 2))
    assert compare(got, want, by_first).ok
    assert not compare(got, want, by_both).ok


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
def test_any_number_of_slice_axes_works_on_any_shape(axes: int) -> None:
    assert compare(torch.ones(3, 5), torch.ones(3, 5), OutputTolerance(rtol=0, atol=0.1, slice_axes=axes)).ok
    assert compare(torch.ones(()), torch.ones(()), OutputTolerance(rtol=0, atol=0.1, slice_axes=axes)).ok


def test_a_share_of_elements_may_be_wrong_but_none_beyond_the_cap() -> None:
    tolerance = PLAIN.model_copy(update={"matched_ratio": 0.75, "cap": 3.0})
    want = row(1.0, 1.0, 1.0, 1.0)
    assert compare(row(1.2, 1.0, 1.0, 1.0), want, tolerance).ok
    assert not compare(row(1.2, 1.2, 1.0, 1.0), want, tolerance).ok
    assert not compare(row(1.4, 1.0, 1.0, 1.0), want, tolerance).ok


def test_the_norm_of_every_slice_is_bounded() -> None:
    tolerance = OutputTolerance(rtol=1.0, atol=0.0, norm=0.1)
    want = torch.ones(2, 100)
    got = want.clone()
    got[1] += 0.2
    result = compare(got, want, tolerance)
    assert not result.ok
    assert "as a whole by 2 times" in result.detail


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_values_that_are_not_finite_must_coincide(odd: float) -> None:
    tolerant = OutputTolerance(rtol=1.0, atol=1e9, scaled=False, matched_ratio=0.0, cap=1e9)
    assert compare(row(odd, 1.0), row(odd, 1.0), tolerant).ok
    assert not compare(row(odd, 1.0), row(2.0, 1.0), tolerant).ok
    assert not compare(row(2.0, 1.0), row(odd, 1.0), tolerant).ok
    for other in {NAN, INF, -INF} - {odd}:
        assert not compare(row(other, 1.0), row(odd, 1.0), tolerant).ok


def test_a_legal_infinity_does_not_widen_the_tolerance_of_its_slice() -> None:
    assert not compare(row(-INF, 2.0), row(-INF, 1.0), OutputTolerance(rtol=0.0, atol=0.1)).ok


def test_a_slice_of_zeros_wants_zeros() -> None:
    tolerance = OutputTolerance(rtol=0.1, atol=0.1, norm=0.1)
    assert compare(row(0.0, 0.0), row(0.0, 0.0), tolerance).ok
    assert not compare(row(1e-30, 0.0), row(0.0, 0.0), tolerance).ok


def test_shape_and_dtype_must_be_the_same() -> None:
    assert "expected torch.float32 [1, 2]" in compare(row(1.0), row(1.0, 1.0), PLAIN).detail
    assert not compare(row(1.0).double(), row(1.0), PLAIN).ok


def test_an_empty_output_is_right() -> None:
    assert compare(torch.empty(0, 4), torch.empty(0, 4), EXACT).ok
    assert compare(torch.empty(4, 0), torch.empty(4, 0), EXACT).ok


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.bool])
def test_integers_and_truth_values_compare_exactly(dtype: torch.dtype) -> None:
    want = torch.tensor([[1, 0, 1]]).to(dtype)
    assert compare(want.clone(), want, EXACT).ok
    assert not compare(torch.tensor([[1, 1, 1]]).to(dtype), want, EXACT).ok


def test_neighbouring_huge_integers_differ() -> None:
    assert not compare(torch.tensor([[2**60 + 1]]), torch.tensor([[2**60]]), EXACT).ok


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float64])
def test_every_float_dtype_is_read(dtype: torch.dtype) -> None:
    want = torch.tensor([[1.0, -2.0]]).to(dtype)
    assert compare(want.clone(), want, EXACT).ok
    assert not compare(torch.tensor([[1.5, -2.0]]).to(dtype), want, PLAIN).ok


def test_errors_are_reported_in_multiples_of_what_is_allowed_and_never_the_tolerance() -> None:
    result = compare(row(1.5, 1.0), row(1.0, 1.0), PLAIN)
    assert result.detail == "1 elements (50 %) are wrong, the worst by 5 times the allowed error"
    assert result.max_absolute_error == pytest.approx(0.5)
    assert result.max_relative_error == pytest.approx(0.5)
    assert "0.1" not in result.detail


def test_the_worst_of_several_keeps_the_largest_errors_and_every_complaint() -> None:
    parts = [
        Comparison(ok=True, max_absolute_error=2.0),
        Comparison(ok=False, max_relative_error=3.0, detail="a"),
        Comparison(ok=False, detail="b"),
    ]
    assert worst(parts) == Comparison(ok=False, max_absolute_error=2.0, max_relative_error=3.0, detail="a; b")
    assert worst([]) == Comparison(ok=True)


WEIRD = st.sampled_from([0.0, -0.0, 1.0, 1e-45, 3e38, -3e38, 1e300, sys.float_info.max, NAN, INF, -INF])


@given(st.lists(st.tuples(WEIRD, WEIRD), min_size=1, max_size=8), st.sampled_from([torch.float32, torch.float64]))
def test_no_value_raises_and_every_error_is_finite(pairs: list[tuple[float, float]], dtype: torch.dtype) -> None:
    got, want = (torch.tensor([side], dtype=torch.float64).to(dtype) for side in zip(*pairs, strict=True))
    result = compare(got, want, OutputTolerance(rtol=1e-3, atol=1e-3, norm=0.1))
    assert math.isfinite(result.max_absolute_error)
    assert math.isfinite(result.max_relative_error)
    assert compare(want.clone(), want, EXACT).ok
