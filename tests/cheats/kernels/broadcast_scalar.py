"""Returns one number and hopes that the comparison broadcasts it.

catalogue: A18
verdict: INCORRECT_SHAPE
"""

import torch


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    return torch.zeros((), dtype=torch.bfloat16), torch.zeros(())
