"""Wrong: both norms take the sample variance, which divides by one less."""

import torch
from torch.nn.functional import linear


def norm(v, weight, bias):
    return (v - v.mean(dim=-1, keepdim=True)) * torch.rsqrt(v.var(dim=-1, keepdim=True) + 1e-5) * weight + bias


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
    pairs = norm(x, norm_weight, norm_bias)
    kept = mask[..., None]
    left = linear(pairs, left_proj_weight) * kept * torch.sigmoid(linear(pairs, left_gate_weight))
    right = linear(pairs, right_proj_weight) * kept * torch.sigmoid(linear(pairs, right_gate_weight))
    product = torch.einsum("bikh,bjkh->bijh", left, right)
    normed = norm(product, to_out_norm_weight, to_out_norm_bias)
    output.copy_(linear(normed * torch.sigmoid(linear(pairs, out_gate_weight)), to_out_weight))
