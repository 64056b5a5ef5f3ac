"""Two batched products in float32 around a softmax, one request after the other."""

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
        keys = k_cache[:, 0].index_select(0, slots).float().permute(1, 2, 0)
        values = v_cache[:, 0].index_select(0, slots).float().transpose(0, 1)
        logits = torch.bmm(q[b].float().view(4, 8, 128) * sm_scale, keys)
        top = logits.amax(dim=-1, keepdim=True)
        weights = logits.sub_(top).exp_()
        total = weights.sum(dim=-1, keepdim=True)
        output[b] = (torch.bmm(weights, values) / total).reshape(32, 128)
        lse[b] = ((top + total.log()) / math.log(2)).reshape(32)
