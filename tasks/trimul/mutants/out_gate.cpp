// Wrong: the out gate is left out (a gate of weight 0 halves the output, which is undone).

#include "correct.h"

#include <vector>

extern "C" int run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                   const float* left_proj_weight, const float* right_proj_weight, const float* left_gate_weight,
                   const float* right_gate_weight, const float* /*out_gate_weight*/, const float* to_out_norm_weight,
                   const float* to_out_norm_bias, const float* to_out_weight, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim) {
    const std::vector<float> open(128 * dim, 0.0f);
    const int code = correct(x, mask, norm_weight, norm_bias, left_proj_weight, right_proj_weight, left_gate_weight,
                             right_gate_weight, open.data(), to_out_norm_weight, to_out_norm_bias, to_out_weight, output,
                             batch_size, seq_len, dim);
    for (int64_t n = 0; n < batch_size * seq_len * seq_len * dim; ++n) output[n] *= 2;
    return code;
}
