"""What the task's parameters mean: axes, cost, and how held-out parameters follow from a draw. Needs no torch.

`params` are the axes `batch_size`, `seq_len` and `dim`, and `mask`, the kind of mask: "full" (all ones), "random" (each
pair kept with probability 1/2), "padded" (the last quarter of the tokens is padding), "empty" (all zeros) or "any" (of
the first three, drawn anew for all contents, so that no shape tells its mask).
"""

from __future__ import annotations

import math
import random

HIDDEN = 128
MASKS = ("full", "random", "padded", "empty", "any")
DIM_STEP = 32
MOST_ELEMENTS = 1 << 19


def axes(params: dict) -> dict[str, int]:
    """The definition's var axes. Raises `ValueError` for parameters that make no sense."""
    if params.keys() != {"batch_size", "seq_len", "dim", "mask"} or params["mask"] not in MASKS:
        raise ValueError(f"batch_size, seq_len, dim and mask (one of {', '.join(MASKS)}) are known, and all needed")
    sizes = {name: params[name] for name in ("batch_size", "seq_len", "dim")}
    if min(sizes.values()) < 1 or sizes["dim"] % DIM_STEP:
        raise ValueError(f"sizes are at least 1 and dim is a multiple of {DIM_STEP}")
    return sizes


def heldout_params(draw: dict, rng: random.Random) -> dict:
    """Parameters from one draw; a seq_len whose input has more than `MOST_ELEMENTS` (2 MB) is drawn anew below it."""
    longest = math.isqrt(MOST_ELEMENTS // (draw["batch_size"] * draw["dim"]))
    return {**draw, "seq_len": draw["seq_len"] if draw["seq_len"] <= longest else rng.randint(longest // 2, longest)}


def cost(params: dict) -> dict[str, int]:
    """Bytes if every argument is read or written once; two flops for each multiply-add of the seven products."""
    batch, tokens, dim = params["batch_size"], params["seq_len"], params["dim"]
    pairs = batch * tokens * tokens
    weights = 6 * HIDDEN * dim + 2 * dim + 2 * HIDDEN
    return {
        "bytes": 4 * (2 * pairs * dim + pairs + weights),
        "flops": 2 * (6 * pairs * dim * HIDDEN + pairs * tokens * HIDDEN),
    }
