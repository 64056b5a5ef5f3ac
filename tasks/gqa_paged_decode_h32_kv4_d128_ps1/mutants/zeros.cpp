// Wrong: everything is zero.

#include <algorithm>
#include <cstdint>

extern "C" int run(const uint16_t*, const uint16_t*, const uint16_t*, const int32_t*, const int32_t*, float, uint16_t* output,
                   float* lse, int64_t batch_size, int64_t, int64_t, int64_t) {
    std::fill(output, output + batch_size * 32 * 128, uint16_t{0});
    std::fill(lse, lse + batch_size * 32, 0.0f);
    return 0;
}
