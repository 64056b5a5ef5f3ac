"""Plain starter in torch: one expression after the other."""

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
    output,
):
    """Writes output in place."""
    pairs = layer_norm(x, x.shape[3:], norm_weight, norm_bias)
    kept = mask[..., None]
    left = linear(pairs, left_proj_weight) * kept * torch.sigmoid(linear(pairs, left_gate_weight))
    right = linear(pairs, right_proj_weight) * kept * torch.sigmoid(linear(pairs, right_gate_weight))
    gate = torch.sigmoid(linear(pairs, out_gate_weight))
    product = torch.einsum("bikh,bjkh->bijh", left, right)
    normed = layer_norm(product, product.shape[3:], to_out_norm_weight, to_out_norm_bias)
    output.copy_(linear(normed * gate, to_out_weight))
