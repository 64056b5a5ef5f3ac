// Wrong: the logits are not scaled.

#include "correct.h"

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float /*sm_scale*/, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t num_pages, int64_t len_indptr, int64_t num_kv_indices) {
    return correct(q, k_cache, v_cache, kv_indptr, kv_indices, 1.0f, output, lse, batch_size, num_pages, len_indptr,
                   num_kv_indices);
}
