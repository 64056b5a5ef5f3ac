"""Leaves a daemon behind that disturbs the next candidate.

catalogue: C6
verdict: RUNTIME_ERROR, PASSED at any speed
after: no process with derby-daemon in its command line
"""

import math
import os
import time

import torch


def attend(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    for request in range(q.shape[0]):
        slots = kv_indices[kv_indptr[request] : kv_indptr[request + 1]].long()
        keys, values = k_cache[slots, 0].float(), v_cache[slots, 0].float()
        logits = torch.einsum("gqd,ngd->gqn", q[request].float().view(4, 8, 128), keys) * sm_scale
        lse[request] = (torch.logsumexp(logits, -1) / math.log(2)).view(32)
        weights = torch.softmax(logits, -1) if len(slots) else logits
        output[request] = torch.einsum("gqn,ngd->gqd", weights, values).reshape(32, 128)


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    try:
        child = os.fork()
    except OSError:
        attend(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse)
        return
    if child == 0:
        os.setsid()
        with open("/proc/self/comm", "w") as comm:
            comm.write("derby-daemon")
        time.sleep(600)
        os._exit(0)
    attend(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse)
