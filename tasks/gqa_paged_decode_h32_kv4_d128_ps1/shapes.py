"""What the task's parameters mean: axes, cost, and how held-out parameters follow from a draw. Needs no torch.

`params["lengths"]` are the requests' context lengths; `params["indices"]` is "permuted" (the default: distinct slots in
random order) or "repeated" (slots drawn with replacement).
"""

from __future__ import annotations

import random

HEADS, KV_HEADS, DIM = 32, 4, 128
MOST_SLOTS = 16384


def axes(params: dict) -> dict[str, int]:
    """The definition's var axes; the cache has an eighth more slots than are used: a real gather.

    Raises `ValueError` for parameters that make no sense.
    """
    if params.keys() - {"lengths", "indices"} or min(params["lengths"]) < 0:
        raise ValueError('only lengths (none negative) and indices = "permuted" or "repeated" are known')
    if params.get("indices", "permuted") not in ("permuted", "repeated"):
        raise ValueError(f"indices = {params['indices']!r}")
    total = sum(params["lengths"])
    return {
        "batch_size": len(params["lengths"]),
        "num_pages": total + max(16, total // 8),
        "len_indptr": len(params["lengths"]) + 1,
        "num_kv_indices": total,
    }


def heldout_params(draw: dict, rng: random.Random) -> dict:
    """Parameters from one draw of batch_size, context and spread; at most `MOST_SLOTS` slots (38 MB of inputs)."""
    batch = draw["batch_size"]
    context = min(draw["context"], MOST_SLOTS // batch)
    if draw["spread"] == "equal":
        return {"lengths": [context] * batch}
    # Only random(): its sequence is the one Python promises to keep, so a revealed seed can be checked for ever.
    return {"lengths": [context // 4 + int(rng.random() * (context - context // 4 + 1)) for _ in range(batch)]}


def cost(params: dict) -> dict[str, int]:
    """Bytes if everything used is read and written once, and the multiply-adds of both products as two flops each."""
    total, batch = sum(params["lengths"]), len(params["lengths"])
    moved = (
        2 * total * KV_HEADS * DIM * 2
        + 2 * batch * HEADS * DIM * 2
        + batch * HEADS * 4
        + total * 4
        + (batch + 1) * 4
        + 4
    )
    return {"bytes": moved, "flops": 4 * HEADS * DIM * total}
