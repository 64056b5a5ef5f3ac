// Wrong: zeros.

#include <algorithm>
#include <cstdint>

extern "C" int run(const float*, const float*, const float*, const float*, const float*, const float*, const float*,
                   const float*, const float*, const float*, const float*, const float*, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim) {
    std::fill(output, output + batch_size * seq_len * seq_len * dim, 0.0f);
    return 0;
}
