"""Works in the first few calls of a shape and sleeps on its laurels afterwards.

catalogue: B4, A16
verdict: INCORRECT_NUMERICAL
"""

import math

import torch


def attend(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    for request in range(q.shape[0]):
        slots = kv_indices[kv_indptr[request] : kv_indptr[request + 1]].long()
        keys, values = k_cache[slots, 0].float(), v_cache[slots, 0].float()
        logits = torch.einsum("gqd,ngd->gqn", q[request].float().view(4, 8, 128), keys) * sm_scale
        lse[request] = (torch.logsumexp(logits, -1) / math.log(2)).view(32)
        weights = torch.softmax(logits, -1) if len(slots) else logits
        output[request] = torch.einsum("gqn,ngd->gqd", weights, values).reshape(32, 128)


CALLS = {}


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    shape = (*q.shape, len(kv_indices))
    CALLS[shape] = CALLS.get(shape, 0) + 1
    if CALLS[shape] <= 2:
        attend(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse)
