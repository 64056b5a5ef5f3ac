"""Plain Triton starter: split-KV decode. One kernel attends a slice of each request, a second merges the slices.

A program of the first kernel serves one (request, KV head, split): the 8 query heads that share the KV head, padded to
the 16 rows that `tl.dot` needs, walk over the split's tokens with an online softmax in base 2. Logits, sums and partial
outputs are float32. A request of length 0 yields output 0 and lse -inf.
"""

import torch
import triton
import triton.language as tl

Q_HEADS, KV_HEADS, DIM = 32, 4, 128
BLOCK_KV = 64  # tune: block_kv in {16, 32, 64, 128}
SPLITS = 16  # tune: splits in {1, 4, 8, 16, 32, 64}
WARPS = 4  # tune: warps in {2, 4, 8}
STAGES = 3  # tune: stages in {1, 2, 3, 4}

ROWS = tl.constexpr(16)  # the least number of rows tl.dot takes; Q_HEADS // KV_HEADS = 8 of them are real
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend_split(
    q_ptr, k_ptr, v_ptr, indptr_ptr, indices_ptr, partial_ptr, peak_ptr, sum_ptr, sm_scale,
    Q_HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, SPLITS: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """Attend one split of a request for one KV head's query heads; leave an unnormalised output, its peak and sum."""
    request, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    GROUP: tl.constexpr = Q_HEADS // KV_HEADS
    row, dim, col = tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, BLOCK_KV)

    begin = tl.load(indptr_ptr + request)
    length = tl.load(indptr_ptr + request + 1) - begin
    per_split = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_KV) * BLOCK_KV
    first = split * per_split
    last = tl.minimum(first + per_split, length)

    q_offsets = (request * Q_HEADS + kv_head * GROUP + row[:, None]) * DIM + dim[None, :]
    q = tl.load(q_ptr + q_offsets, mask=row[:, None] < GROUP, other=0.0)
    peak = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    for start in range(first, last, BLOCK_KV):  # not entered by a split beyond the request's end
        valid = start + col < last
        slot = tl.load(indices_ptr + begin + start + col, mask=valid, other=0).to(tl.int64)
        kv_offsets = (slot[:, None] * KV_HEADS + kv_head) * DIM + dim[None, :]
        k = tl.load(k_ptr + kv_offsets, mask=valid[:, None], other=0.0)
        v = tl.load(v_ptr + kv_offsets, mask=valid[:, None], other=0.0)
        logits = tl.dot(q, tl.trans(k)) * (sm_scale * LOG2_E)
        logits = tl.where(valid[None, :], logits, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(logits, 1))
        rescale = tl.exp2(peak - new_peak)
        p = tl.exp2(logits - new_peak[:, None])
        total = total * rescale + tl.sum(p, 1)
        acc = acc * rescale[:, None] + tl.dot(p.to(v.dtype), v)
        peak = new_peak

    slot_out = ((request * KV_HEADS + kv_head) * SPLITS + split) * GROUP + row
    tl.store(partial_ptr + slot_out[:, None] * DIM + dim[None, :], acc, mask=row[:, None] < GROUP)
    tl.store(peak_ptr + slot_out, peak, mask=row < GROUP)
    tl.store(sum_ptr + slot_out, total, mask=row < GROUP)


@triton.jit
def merge_splits(
    partial_ptr, peak_ptr, sum_ptr, output_ptr, lse_ptr,
    Q_HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Merge the splits of one (request, query head), each weighted by 2 ** (its peak - the highest peak)."""
    request, head = tl.program_id(0), tl.program_id(1)
    GROUP: tl.constexpr = Q_HEADS // KV_HEADS
    split, dim = tl.arange(0, SPLITS), tl.arange(0, DIM)
    slot_in = ((request * KV_HEADS + head // GROUP) * SPLITS + split) * GROUP + head % GROUP

    peak = tl.load(peak_ptr + slot_in)
    top = tl.max(peak, 0)
    weight = tl.where(peak == -float("inf"), 0.0, tl.exp2(peak - top))  # an empty split would give inf - inf
    total = tl.sum(weight * tl.load(sum_ptr + slot_in), 0)
    partial = tl.load(partial_ptr + slot_in[:, None] * DIM + dim[None, :])
    output = tl.sum(partial * weight[:, None], 0) / tl.where(total > 0, total, 1.0)

    tl.store(output_ptr + (request * Q_HEADS + head) * DIM + dim, output.to(output_ptr.dtype.element_ty))
    tl.store(lse_ptr + request * Q_HEADS + head, top + tl.log2(total))


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    """Write `output` [batch, 32, 128] (q's dtype) and `lse` [batch, 32] (float32, base 2); allocates scratch."""
    batch = q.shape[0]
    partial = torch.empty((batch, Q_HEADS, SPLITS, DIM), dtype=torch.float32, device=q.device)
    peak = torch.empty((batch, Q_HEADS, SPLITS), dtype=torch.float32, device=q.device)
    total = torch.empty_like(peak)
    attend_split[(batch, KV_HEADS, SPLITS)](
        q, k_cache, v_cache, kv_indptr, kv_indices, partial, peak, total, sm_scale,
        Q_HEADS, KV_HEADS, DIM, SPLITS, BLOCK_KV, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    merge_splits[(batch, Q_HEADS)](
        partial, peak, total, output, lse, Q_HEADS, KV_HEADS, DIM, SPLITS, num_warps=4
    )  # fmt: skip
