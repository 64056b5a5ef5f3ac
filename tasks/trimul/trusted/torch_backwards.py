"""LayerNorms by hand, the sum over k and the products over channels in blocks from the last one to the first."""

import torch


def norm(v, weight, bias):
    off = v - v.mean(dim=-1, keepdim=True)
    return off * torch.rsqrt(off.square().mean(dim=-1, keepdim=True) + 1e-5) * weight + bias


def linear(v, weight):
    out = v[..., -32:] @ weight[:, -32:].t()
    for end in range(v.shape[-1] - 32, 0, -32):
        out += v[..., end - 32 : end] @ weight[:, end - 32 : end].t()
    return out


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
    left = linear(pairs, left_proj_weight) * mask[..., None] / (1 + torch.exp(-linear(pairs, left_gate_weight)))
    right = linear(pairs, right_proj_weight) * mask[..., None] / (1 + torch.exp(-linear(pairs, right_gate_weight)))
    left, right = left.permute(0, 3, 1, 2), right.permute(0, 3, 2, 1)
    product = 0
    for k in range((x.shape[1] - 1) // 8 * 8, -1, -8):
        product = product + left[..., k : k + 8] @ right[..., k : k + 8, :]
    normed = norm(product.permute(0, 2, 3, 1), to_out_norm_weight, to_out_norm_bias)
    output.copy_(linear(normed / (1 + torch.exp(-linear(pairs, out_gate_weight))), to_out_weight))
