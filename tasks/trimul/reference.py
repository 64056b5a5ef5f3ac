"""The truth: the outgoing triangle multiplicative update, in float32."""

from __future__ import annotations

import torch
from torch.nn.functional import layer_norm, linear


def run(
    x,
    mask,
    norm_weight,
    norm_bias,
    left_proj_weight,
    right_proj_weight,
    left_gate_weight,
    right_gate_weight,
    out_gate_weight,
    to_out_norm_weight,
    to_out_norm_bias,
    to_out_weight,
):
    """Shapes and dtypes as in the definition; returns output."""
    pairs = layer_norm(x, x.shape[-1:], norm_weight, norm_bias, eps=1e-5)
    kept = mask.unsqueeze(-1)
    left = linear(pairs, left_proj_weight) * kept * torch.sigmoid(linear(pairs, left_gate_weight))
    right = linear(pairs, right_proj_weight) * kept * torch.sigmoid(linear(pairs, right_gate_weight))
    product = torch.einsum("bikh,bjkh->bijh", left, right)
    normed = layer_norm(product, product.shape[-1:], to_out_norm_weight, to_out_norm_bias, eps=1e-5)
    return linear(normed * torch.sigmoid(linear(pairs, out_gate_weight)), to_out_weight)
