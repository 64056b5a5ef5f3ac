"""Plain starter in torch: one request after the other, float32 arithmetic."""

import math
from itertools import pairwise

import torch


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    """Writes output and lse in place."""
    output.zero_()
    lse.fill_(-math.inf)
    bounds = kv_indptr.tolist()
    for b, (start, end) in enumerate(pairwise(bounds)):
        if start == end:
            continue
        slots = kv_indices[start:end]
        keys = k_cache[slots, 0].float().permute(1, 2, 0)  # [4, 128, slots]
        values = v_cache[slots, 0].float().transpose(0, 1)  # [4, slots, 128]
        logits = torch.bmm(q[b].float().view(4, 8, 128), keys) * sm_scale
        total = torch.logsumexp(logits, dim=-1, keepdim=True)
        output[b] = torch.bmm(torch.exp(logits - total), values).reshape(32, 128)
        lse[b] = total.reshape(32) / math.log(2)
