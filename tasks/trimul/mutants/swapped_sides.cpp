// Wrong: left and right are taken for each other: the product comes out transposed.

#include "correct.h"

extern "C" int run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                   const float* left_proj_weight, const float* right_proj_weight, const float* left_gate_weight,
                   const float* right_gate_weight, const float* out_gate_weight, const float* to_out_norm_weight,
                   const float* to_out_norm_bias, const float* to_out_weight, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim) {
    return correct(x, mask, norm_weight, norm_bias, right_proj_weight, left_proj_weight, right_gate_weight, left_gate_weight,
                   out_gate_weight, to_out_norm_weight, to_out_norm_bias, to_out_weight, output, batch_size, seq_len, dim);
}
