// Wrong: the last 1 % of every context is left out.

#include "correct.h"

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float sm_scale, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t num_pages, int64_t len_indptr, int64_t /*num_kv_indices*/) {
    std::vector<int32_t> indptr{0}, indices;
    for (int64_t b = 0; b < batch_size; ++b) {
        const int32_t length = kv_indptr[b + 1] - kv_indptr[b], kept = length - length / 100;
        indices.insert(indices.end(), kv_indices + kv_indptr[b], kv_indices + kv_indptr[b] + kept);
        indptr.push_back(static_cast<int32_t>(indices.size()));
    }
    return correct(q, k_cache, v_cache, indptr.data(), indices.data(), sm_scale, output, lse, batch_size, num_pages,
                   len_indptr, indptr.back());
}
