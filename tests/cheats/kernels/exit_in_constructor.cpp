// Ends the process with success while it is being loaded.
//
// catalogue: C1, C13
// verdict: RUNTIME_ERROR
#include <cstdint>
#include <unistd.h>

__attribute__((constructor)) static void leave() { _exit(0); }

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float sm_scale, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t num_pages, int64_t len_indptr, int64_t num_kv_indices) {
    return 0;
}
