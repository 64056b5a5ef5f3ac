"""torch's fused CPU attention, one request after the other; a group's eight queries are its eight query positions."""

import math
from itertools import pairwise

import torch

attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    """Writes output and lse in place."""
    output.zero_()
    lse.fill_(-math.inf)
    bounds = kv_indptr.tolist()
    for b, (start, end) in enumerate(pairwise(bounds)):
        if start == end:
            continue
        slots = kv_indices[start:end]
        keys = k_cache[:, 0].index_select(0, slots).transpose(0, 1).unsqueeze(0)
        values = v_cache[:, 0].index_select(0, slots).transpose(0, 1).unsqueeze(0)
        rows, total = attend(q[b].view(1, 4, 8, 128), keys, values, scale=sm_scale)
        output[b] = rows.reshape(32, 128)
        torch.mul(total.reshape(32), 1 / math.log(2), out=lse[b])
