"""Makes the task's inputs, in the judge only: full contents of several families, cheap fresh ones between calls."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import numpy as np
import torch

_shapes = runpy.run_path(str(Path(__file__).with_name("shapes.py")))
axes, heldout_params, cost, HIDDEN = (_shapes[name] for name in ("axes", "heldout_params", "cost", "HIDDEN"))

FAMILIES = ("normal", "cauchy", "offset", "faint", "flat", "positive", "lone")
"""normal: standard normals, weights over the square root of their outputs, the family that is timed. cauchy: heavy
tails, a channel or two carry a whole pair. offset: channels share a mean of 10 times their deviation. faint: both
variances are about as small as the eps under their roots. flat: all channels of a pair alike, variance 0. positive:
weights and biases without sign changes, nothing cancels out. lone: the mask keeps the first, the last and one other k
only."""

_PROJECTIONS = (
    "left_proj_weight",
    "right_proj_weight",
    "left_gate_weight",
    "right_gate_weight",
    "out_gate_weight",
    "to_out_weight",
)
_AFFINES = ("norm_weight", "norm_bias", "to_out_norm_weight", "to_out_norm_bias")


def make_inputs(params: dict, rng: np.random.Generator, family: str) -> dict:
    """All inputs in the definition's order, on the CPU."""
    sizes = axes(params)
    batch, tokens, dim = sizes["batch_size"], sizes["seq_len"], sizes["dim"]
    x = _normals(rng, batch, tokens, tokens, dim)
    made = {
        "x": x,
        "mask": torch.from_numpy(_mask(params, rng)),
        "norm_weight": _normals(rng, dim),
        "norm_bias": _normals(rng, dim),
        **{name: _normals(rng, HIDDEN, dim) / math.sqrt(HIDDEN) for name in _PROJECTIONS[:-1]},
        "to_out_norm_weight": _normals(rng, HIDDEN),
        "to_out_norm_bias": _normals(rng, HIDDEN),
        "to_out_weight": _normals(rng, dim, HIDDEN) / math.sqrt(dim),
    }
    if family == "cauchy":
        x.div_(_normals(rng, *x.shape)).mul_(2).clamp_(-1e6, 1e6)  # a quotient of normals is Cauchy's
    elif family == "offset":
        x += 10
    elif family == "faint":
        x *= 3e-3
        made["left_proj_weight"] *= 3e-3 / math.sqrt(tokens)
    elif family == "flat":
        # Small: what rounding leaves of a mean is then nothing beside sqrt(eps), however the mean was taken.
        x.copy_(x[..., :1].expand_as(x)).mul_(3e-3)
    elif family == "positive":
        for name in (*_PROJECTIONS, *_AFFINES):
            made[name].abs_()
    elif family == "lone":
        kept = [0, tokens - 1, int(rng.integers(tokens))]
        made["mask"] = torch.zeros_like(made["mask"])
        made["mask"][:, :, kept] = 1
    return made


def refresh(inputs: dict, params: dict, pool, rng: np.random.Generator) -> None:
    """New contents of the family "normal" in place: memcpy of normals from `pool`; the mask is drawn anew."""
    for name in ("x", *_AFFINES, *_PROJECTIONS):
        pool.fill(inputs[name], rng)
    for name in _PROJECTIONS:
        inputs[name] /= math.sqrt(len(inputs[name]))
    inputs["mask"].copy_(torch.from_numpy(_mask(params, rng)))


def sample(inputs: dict, rng: np.random.Generator) -> tuple[dict, slice]:
    """One batch entry as a problem of its own: every output of an entry depends on nearly all of its input."""
    b = int(rng.integers(len(inputs["x"])))
    rows = slice(b, b + 1)
    return {**inputs, "x": inputs["x"][rows], "mask": inputs["mask"][rows]}, rows


def _normals(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def _mask(params: dict, rng: np.random.Generator) -> np.ndarray:
    batch, tokens, kind = params["batch_size"], params["seq_len"], params["mask"]
    kind = str(rng.choice(("full", "random", "padded"))) if kind == "any" else kind
    shape = (batch, tokens, tokens)
    if kind == "random":
        return rng.integers(0, 2, shape).astype(np.float32)
    if kind == "padded":
        real = np.arange(tokens) < tokens - tokens // 4
        return np.broadcast_to(real[:, None] & real, shape).astype(np.float32, order="C")
    return np.full(shape, kind == "full", dtype=np.float32)
