"""Makes the task's inputs, in the judge only: full contents of several families, cheap fresh ones between calls."""

from __future__ import annotations

import math
import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

_shapes = runpy.run_path(str(Path(__file__).with_name("shapes.py")))
axes, heldout_params, cost = _shapes["axes"], _shapes["heldout_params"], _shapes["cost"]
HEADS, KV_HEADS, DIM = _shapes["HEADS"], _shapes["KV_HEADS"], _shapes["DIM"]
GROUP = HEADS // KV_HEADS

FAMILIES = ("normal", "spikes", "large", "tiny", "ties", "positive")
"""normal: standard normals, the family that is timed. spikes: keys aligned with a query, with large values, at the
first, last and some middle slot of each request. large: logits 30 times as wide, softmax nearly one-hot. tiny: logits
nearly equal, values near zero. ties: only two distinct keys. positive: no sign changes, nothing cancels out."""


def make_inputs(params: dict, rng: np.random.Generator, family: str) -> dict:
    """All inputs in the definition's order, on the CPU."""
    sizes = axes(params)
    batch, pages, lengths = sizes["batch_size"], sizes["num_pages"], params["lengths"]
    q = _normals(rng, batch, HEADS, DIM)
    k, v = _normals(rng, pages, 1, KV_HEADS, DIM), _normals(rng, pages, 1, KV_HEADS, DIM)
    kv_indptr = torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32)
    kv_indices = torch.from_numpy(_slots(params, rng))
    # Outside the timed family the factor varies, so that a kernel which assumes 1/sqrt(128) is found out.
    sm_scale = 1 / math.sqrt(DIM) * (1.0 if family == "normal" else rng.uniform(0.6, 1.6))
    sm_scale = float(np.float32(sm_scale))
    if family == "spikes":
        _plant(q, k, v, kv_indptr, kv_indices, sm_scale, rng)
    elif family == "large":
        q *= 30
    elif family == "tiny":
        q *= 1e-3
        v *= 1e-3
    elif family == "ties":
        k = k[torch.from_numpy(rng.integers(0, 2, pages))]
    elif family == "positive":
        q, k, v = q.abs(), k.abs(), v.abs()
    bf16 = torch.bfloat16
    return {
        "q": q.to(bf16),
        "k_cache": k.to(bf16),
        "v_cache": v.to(bf16),
        "kv_indptr": kv_indptr,
        "kv_indices": kv_indices,
        "sm_scale": sm_scale,
    }


def refresh(inputs: dict, params: dict, pool, rng: np.random.Generator) -> None:
    """New contents of the family "normal" in place: memcpy of normals from `pool`, slots drawn anew, lengths kept."""
    for name in ("q", "k_cache", "v_cache"):
        pool.fill(inputs[name], rng)
    inputs["kv_indices"].copy_(torch.from_numpy(_slots(params, rng)))


def sample(inputs: dict, rng: np.random.Generator) -> tuple[dict, slice]:
    """One request as a problem of its own; its outputs are that row of the full outputs."""
    b = int(rng.integers(len(inputs["kv_indptr"]) - 1))
    start, end = inputs["kv_indptr"][b : b + 2].tolist()
    one = {
        "q": inputs["q"][b : b + 1],
        "kv_indptr": torch.tensor([0, end - start], dtype=torch.int32),
        "kv_indices": inputs["kv_indices"][start:end],
    }
    return {**inputs, **one}, slice(b, b + 1)


def _normals(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def _slots(params: dict, rng: np.random.Generator) -> np.ndarray:
    sizes = axes(params)
    if params.get("indices", "permuted") == "repeated":
        return rng.integers(0, sizes["num_pages"], sizes["num_kv_indices"], dtype=np.int32)
    return rng.permutation(sizes["num_pages"]).astype(np.int32)[: sizes["num_kv_indices"]]


def _plant(q, k, v, kv_indptr, kv_indices, sm_scale: float, rng: np.random.Generator) -> None:
    """Give three slots of each request and key/value head about a quarter each of one query head's softmax."""
    for b, (start, end) in enumerate(pairwise(kv_indptr.tolist())):
        if start == end:
            continue
        for position in {start, end - 1, int(rng.integers(start, end))}:
            slot = int(kv_indices[position])
            for g in range(KV_HEADS):
                query = q[b, g * GROUP + int(rng.integers(GROUP))]
                wanted = math.log(end - start) + 1.0  # against a background of about log(length) + 1/2
                k[slot, 0, g] = query * (wanted / (sm_scale * float(query @ query)))
                v[slot, 0, g] = 8.0 + _normals(rng, DIM)
