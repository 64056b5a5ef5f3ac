"""The truth: attention of one query per request over its slots, in float32."""

from __future__ import annotations

import math

import torch


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    """Shapes and dtypes as in the definition; returns (output bfloat16, lse float32, base 2)."""
    batch, heads, dim = q.shape
    kv_heads = k_cache.shape[2]
    output = torch.zeros(batch, heads, dim, dtype=torch.bfloat16, device=q.device)
    lse = torch.full((batch, heads), -math.inf, dtype=torch.float32, device=q.device)
    for b in range(batch):
        slots = kv_indices[kv_indptr[b] : kv_indptr[b + 1]].long()
        if len(slots) == 0:
            continue
        queries = q[b].float().view(kv_heads, heads // kv_heads, dim)
        keys = k_cache[slots, 0].float()
        values = v_cache[slots, 0].float()
        logits = torch.einsum("ghd,tgd->ght", queries, keys) * sm_scale
        top = logits.amax(dim=-1, keepdim=True)
        weights = torch.exp(logits - top)
        total = weights.sum(dim=-1, keepdim=True)
        output[b] = (torch.einsum("ght,tgd->ghd", weights, values) / total).reshape(heads, dim)
        lse[b] = ((top + torch.log(total)) / math.log(2)).reshape(heads)
    return output, lse
