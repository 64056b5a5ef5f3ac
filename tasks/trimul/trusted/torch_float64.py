"""Every step in float64, rounded once at the end."""

import torch


def norm(v, weight, bias):
    off = v - v.mean(dim=-1, keepdim=True)
    return off / torch.sqrt(off.square().mean(dim=-1, keepdim=True) + 1e-5) * weight.double() + bias.double()


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

    def projected(weight):
        return pairs @ weight.double().t()

    pairs = norm(x.double(), norm_weight, norm_bias)
    kept = mask.double()[..., None]
    left = kept * projected(left_proj_weight) * torch.sigmoid(projected(left_gate_weight))
    right = kept * projected(right_proj_weight) * torch.sigmoid(projected(right_gate_weight))
    product = (left.permute(0, 3, 1, 2) @ right.permute(0, 3, 2, 1)).permute(0, 2, 3, 1)
    normed = norm(product, to_out_norm_weight, to_out_norm_bias)
    output.copy_((normed * torch.sigmoid(projected(out_gate_weight))) @ to_out_weight.double().t())
