"""Returns a subclass that would compute when somebody looks at it.

catalogue: A10
verdict: INCORRECT_DTYPE, INCORRECT_SHAPE, RUNTIME_ERROR
"""

import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.zeros(())


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    return torch.empty_like(q).as_subclass(Lazy), torch.empty(q.shape[:2]).as_subclass(Lazy)
