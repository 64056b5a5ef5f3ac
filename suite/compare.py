"""Compares one output with what it should be, by the rules of `OutputTolerance`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import torch

from suite.types import Frozen, OutputTolerance

LARGEST = sys.float_info.max


class Comparison(Frozen):
    """Errors of one output (or the worst of several). They are finite always; relative errors are against the rms of
    the slice. `detail` is empty if `ok`, else words that say how far off the output is in multiples of what is allowed.
    """

    ok: bool
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    detail: str = ""


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """All comparisons as one: right if each is, the largest errors, every detail."""
    parts = tuple(comparisons)
    return Comparison(
        ok=all(part.ok for part in parts),
        max_absolute_error=max((part.max_absolute_error for part in parts), default=0.0),
        max_relative_error=max((part.max_relative_error for part in parts), default=0.0),
        detail="; ".join(part.detail for part in parts if part.detail),
    )


def compare(got: torch.Tensor, want: torch.Tensor, tolerance: OutputTolerance) -> Comparison:
    """Whether `got` is `want` within the tolerance. Both: any shape, any real dtype; no value raises.

    The arithmetic is float64, so that no value of a narrower dtype overflows in it.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        came, expected = (f"{tensor.dtype} {list(tensor.shape)}" for tensor in (got, want))
        return Comparison(ok=False, detail=f"is {came}, expected {expected}")
    if want.numel() == 0:
        return Comparison(ok=True)
    found, wanted, misplaced = _finite(_slices(got, tolerance), _slices(want, tolerance))
    error = (found - wanted).abs_()
    if not want.dtype.is_floating_point:  # beyond 2^53, neighbours are one float64
        error = torch.where((got != want).view_as(error), error.clamp(min=1.0), error)
    counts = _elements_per_slice(want, tolerance)
    rms = (torch.linalg.vector_norm(wanted, dim=1, keepdim=True) / math.sqrt(counts)).clamp_(max=LARGEST)
    absolute = float(error.amax())
    relative = float((error.amax(dim=1, keepdim=True) / torch.where(rms > 0, rms, 1.0)).amax())
    complaints = (
        [f"{misplaced} NaN or infinite values where none belong, or missing where they do"] if misplaced else []
    )
    complaints += _too_far(error, wanted, rms, tolerance)
    return Comparison(
        ok=not complaints,
        max_absolute_error=min(absolute, LARGEST),
        max_relative_error=min(relative, LARGEST),
        detail=", ".join(complaints),
    )


def _elements_per_slice(tensor: torch.Tensor, tolerance: OutputTolerance) -> int:
    return math.prod(tensor.shape[tolerance.slice_axes :])


def _slices(tensor: torch.Tensor, tolerance: OutputTolerance) -> torch.Tensor:
    """The tensor as float64 [slices, elements of a slice]."""
    return tensor.detach().to(torch.float64).reshape(-1, _elements_per_slice(tensor, tolerance))


def _finite(got: torch.Tensor, want: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Both with everything zeroed that is not finite in either, and how many of these differ in kind or position."""
    if math.isfinite(float(got.sum()) + float(want.sum())):  # the usual case, at a fifth of the masks' cost
        return got, want, 0
    odd = ~(torch.isfinite(got) & torch.isfinite(want))
    same = (got == want) | (torch.isnan(got) & torch.isnan(want))
    misplaced = int((odd & ~same).sum())
    return got.masked_fill(odd, 0.0), want.masked_fill(odd, 0.0), misplaced


def _too_far(error: torch.Tensor, want: torch.Tensor, rms: torch.Tensor, tolerance: OutputTolerance) -> list[str]:
    """Complaints about finite values. `error`, `want`: [slices, elements]; `rms`: [slices, 1]."""
    allowed = want.abs() * tolerance.rtol + (rms * tolerance.atol if tolerance.scaled else tolerance.atol)
    wrong = int((error > allowed).sum())
    complaints = []
    if wrong:
        excess = _ratio(error, allowed)
        count = want.numel()
        # Compared as counts: 1 - matched_ratio is not exact in binary.
        if count - wrong < tolerance.matched_ratio * count or excess > tolerance.cap:
            share = f"{wrong} elements ({100 * wrong / count:.3g} %) are wrong"
            complaints.append(f"{share}, the worst by {excess:.3g} times the allowed error")
    if tolerance.norm is not None:
        distance = torch.linalg.vector_norm(error, dim=1)
        off = _ratio(distance, torch.linalg.vector_norm(want, dim=1) * tolerance.norm)
        if off > 1:
            complaints.append(f"a slice is off as a whole by {off:.3g} times the allowed distance")
    return complaints


def _ratio(part: torch.Tensor, whole: torch.Tensor) -> float:
    """The largest part / whole, with 0 / 0 = 0."""
    return float(torch.where(part > 0, part / whole, 0.0).amax())
