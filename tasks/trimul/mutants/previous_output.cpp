// Wrong: every call returns what the call before it should have (the first one, its own).

#include "correct.h"

#include <vector>

namespace {
std::vector<float> last;
}

extern "C" int run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                   const float* left_proj_weight, const float* right_proj_weight, const float* left_gate_weight,
                   const float* right_gate_weight, const float* out_gate_weight, const float* to_out_norm_weight,
                   const float* to_out_norm_bias, const float* to_out_weight, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim) {
    const int code = correct(x, mask, norm_weight, norm_bias, left_proj_weight, right_proj_weight, left_gate_weight,
                             right_gate_weight, out_gate_weight, to_out_norm_weight, to_out_norm_bias, to_out_weight, output,
                             batch_size, seq_len, dim);
    std::vector<float> mine(output, output + batch_size * seq_len * seq_len * dim);
    if (last.size() == mine.size()) std::copy(last.begin(), last.end(), output);
    last = mine;
    return code;
}
