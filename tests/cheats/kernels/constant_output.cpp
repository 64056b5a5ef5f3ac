// Writes zeros, which an absolute tolerance may let pass at long contexts.
//
// catalogue: A4
// verdict: INCORRECT_NUMERICAL
#include <algorithm>
#include <cstdint>

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float sm_scale, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t num_pages, int64_t len_indptr, int64_t num_kv_indices) {
    std::fill(output, output + batch_size * 32 * 128, uint16_t(0));
    std::fill(lse, lse + batch_size * 32, 8.0f);
    return 0;
}
