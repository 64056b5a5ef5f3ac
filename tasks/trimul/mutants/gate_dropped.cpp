// Wrong: left is not gated (a gate of weight 0 halves it, which is undone).

#include "correct.h"

#include <vector>

extern "C" int run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                   const float* left_proj_weight, const float* right_proj_weight, const float* /*left_gate_weight*/,
                   const float* right_gate_weight, const float* out_gate_weight, const float* to_out_norm_weight,
                   const float* to_out_norm_bias, const float* to_out_weight, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim) {
    std::vector<float> open(128 * dim, 0.0f), doubled(left_proj_weight, left_proj_weight + 128 * dim);
    for (float& each : doubled) each *= 2;
    return correct(x, mask, norm_weight, norm_bias, doubled.data(), right_proj_weight, open.data(), right_gate_weight,
                   out_gate_weight, to_out_norm_weight, to_out_norm_bias, to_out_weight, output, batch_size, seq_len, dim);
}
