// Wrong: every call returns what the call before it should have (the first one, its own).

#include "correct.h"

namespace {
std::vector<uint16_t> last_output;
std::vector<float> last_lse;
}  // namespace

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float sm_scale, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t num_pages, int64_t len_indptr, int64_t num_kv_indices) {
    const int code = correct(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse, batch_size, num_pages, len_indptr,
                   num_kv_indices);
    std::vector<uint16_t> this_output(output, output + batch_size * 32 * 128);
    std::vector<float> this_lse(lse, lse + batch_size * 32);
    if (last_output.size() == this_output.size()) {
        std::copy(last_output.begin(), last_output.end(), output);
        std::copy(last_lse.begin(), last_lse.end(), lse);
    }
    last_output = this_output;
    last_lse = this_lse;
    return code;
}
