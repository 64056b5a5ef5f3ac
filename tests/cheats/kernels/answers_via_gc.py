"""Copies any tensor of the output's shape that the garbage collector knows.

catalogue: A6
verdict: INCORRECT_NUMERICAL
"""

import gc

import torch


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    mine = (q.data_ptr(), output.data_ptr())
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == output.shape and thing.data_ptr() not in mine:
            output.copy_(thing)
