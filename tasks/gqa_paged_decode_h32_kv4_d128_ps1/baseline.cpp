// Paged grouped-query attention, one decode step: the fused expert kernel.
//
// A task is a run of at most kChunk slots of one request, for all heads: a slot's kilobyte of keys (and of values) is then
// read once, contiguously. Blocks of kBlock slots go through logits, base-2 online softmax and weighted values while their
// rows are in the cache. Register tiles: 4 query heads x 2 slots for the logits, 4 query heads x 2 vectors for the values.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace {

constexpr int kHeads = 32, kKvHeads = 4, kDim = 128, kGroup = kHeads / kKvHeads, kRow = kKvHeads * kDim;
constexpr int kChunk = 256, kBlock = 32, kAhead = 4;
#ifdef __AVX512F__
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
constexpr int kVectors = kDim / kLanes;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNothing = -1e30f;  // logit of a slot that is not there: its weight is 2^-126, and it is never the maximum

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));

struct Chunk {
    int request, first, count;
};

struct Partial {
    float top[kHeads], sum[kHeads];
    Floats values[kHeads][kVectors];
};

inline Floats widen(const uint16_t* bits) {
    Halves halves;
    std::memcpy(&halves, bits, sizeof halves);
    return reinterpret_cast<Floats>(__builtin_convertvector(halves, Words) << 16);
}

inline uint16_t narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float total(Floats v) {
    float lanes[kLanes];
    std::memcpy(lanes, &v, sizeof v);
    for (int step = kLanes / 2; step > 0; step /= 2)
        for (int i = 0; i < step; ++i) lanes[i] += lanes[i + step];
    return lanes[0];
}

// 2^x for x <= 0 to about 2e-7: nearest integer by the rounding of a large addend, the rest by its Taylor polynomial.
inline Floats exp2_of(Floats x) {
    const Floats low = Floats{} - 126.0f;
    x = x < low ? low : x;
    const Floats shifted = x + 12582912.0f;
    const Floats f = x - (shifted - 12582912.0f);
    Floats p = Floats{} + 1.54035304e-4f;
    p = p * f + 1.33335581e-3f;
    p = p * f + 9.61812911e-3f;
    p = p * f + 5.55041087e-2f;
    p = p * f + 2.40226507e-1f;
    p = p * f + 6.93147181e-1f;
    p = p * f + 1.0f;
    const Ints power = (reinterpret_cast<Ints>(shifted) << 23) + 0x3f800000;
    return p * reinterpret_cast<Floats>(power);
}

inline void prefetch(const uint16_t* row) {
    for (int line = 0; line < kRow * 2 / 64; ++line) __builtin_prefetch(row + line * 32);
}

// Logits of 4 query heads against 2 key rows.
inline void tile_logits(const Floats (*query)[kVectors], const uint16_t* k0, const uint16_t* k1, float* logits, int t) {
    Floats sums[4][2] = {};
    for (int c = 0; c < kVectors; ++c) {
        const Floats a = widen(k0 + c * kLanes), b = widen(k1 + c * kLanes);
        for (int h = 0; h < 4; ++h) {
            sums[h][0] += query[h][c] * a;
            sums[h][1] += query[h][c] * b;
        }
    }
    for (int h = 0; h < 4; ++h) {
        logits[h * kBlock + t] = total(sums[h][0]);
        logits[h * kBlock + t + 1] = total(sums[h][1]);
    }
}

// Adds `count` weighted value rows to 2 vectors of 4 query heads.
inline void tile_values(Floats (*values)[kVectors], const uint16_t* const* rows, int offset, int c, const float* weights, int count) {
    Floats sums[4][2];
    for (int h = 0; h < 4; ++h) sums[h][0] = values[h][c], sums[h][1] = values[h][c + 1];
    for (int t = 0; t < count; ++t) {
        const uint16_t* row = rows[t] + offset + c * kLanes;
        const Floats a = widen(row), b = widen(row + kLanes);
        for (int h = 0; h < 4; ++h) {
            sums[h][0] += weights[h * kBlock + t] * a;
            sums[h][1] += weights[h * kBlock + t] * b;
        }
    }
    for (int h = 0; h < 4; ++h) values[h][c] = sums[h][0], values[h][c + 1] = sums[h][1];
}

// Logits of one query head's block (in place) to weights; rescales what the head has summed when the maximum grows.
inline void soften(float* logits, Partial& part, int head) {
    Floats block[kBlock / kLanes];
    std::memcpy(block, logits, sizeof block);
    Floats most = block[0];
    for (const Floats& v : block) most = v > most ? v : most;
    float top = part.top[head];
    for (int i = 0; i < kLanes; ++i) top = std::max(top, most[i]);
    if (top > part.top[head]) {
        const float shrink = std::exp2(part.top[head] - top);
        for (Floats& v : part.values[head]) v *= shrink;
        part.sum[head] *= shrink;
        part.top[head] = top;
    }
    Floats sum = {};
    for (Floats& v : block) sum += v = exp2_of(v - top);
    std::memcpy(logits, block, sizeof block);
    part.sum[head] += total(sum);
}

void attend(const Floats (*query)[kVectors], const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* slots, int count,
            Partial& part) {
    std::fill(part.top, part.top + kHeads, -kInfinity);
    std::fill(part.sum, part.sum + kHeads, 0.0f);
    std::memset(part.values, 0, sizeof part.values);
    alignas(64) float logits[kGroup * kBlock];
    const uint16_t *keys[kBlock + 1], *values[kBlock];
    for (int first = 0; first < count; first += kBlock) {
        const int n = std::min(kBlock, count - first);
        for (int t = 0; t < n; ++t) {
            keys[t] = k_cache + static_cast<int64_t>(slots[first + t]) * kRow;
            values[t] = v_cache + static_cast<int64_t>(slots[first + t]) * kRow;
        }
        keys[n] = keys[n - 1];  // an odd count's last tile takes a row twice
        for (int g = 0; g < kKvHeads; ++g) {
            for (int t = 0; t < n; t += 2) {
                if (g == 0)
                    for (int u = t + kAhead; u < std::min(t + kAhead + 2, n); ++u) prefetch(keys[u]);
                for (int h = 0; h < kGroup; h += 4)
                    tile_logits(query + g * kGroup + h, keys[t] + g * kDim, keys[t + 1] + g * kDim, logits + h * kBlock, t);
                if (g == 0) prefetch(values[t]), prefetch(values[std::min(t + 1, n - 1)]);
            }
            for (int h = 0; h < kGroup; ++h) std::fill(logits + h * kBlock + n, logits + (h + 1) * kBlock, kNothing);
            for (int h = 0; h < kGroup; ++h) soften(logits + h * kBlock, part, g * kGroup + h);
            for (int h = 0; h < kGroup; h += 4)
                for (int c = 0; c < kVectors; c += 2)
                    tile_values(part.values + g * kGroup + h, values, g * kDim, c, logits + h * kBlock, n);
        }
    }
}

// Joins the parts [from, to) of one query head.
void merge(const Partial* parts, int from, int to, int head, uint16_t* output, float* lse) {
    float top = -kInfinity, sum = 0;
    for (int i = from; i < to; ++i) top = std::max(top, parts[i].top[head]);
    Floats values[kVectors] = {};
    for (int i = from; i < to; ++i) {
        const float weight = std::exp2(parts[i].top[head] - top);
        sum += weight * parts[i].sum[head];
        for (int c = 0; c < kVectors; ++c) values[c] += weight * parts[i].values[head][c];
    }
    for (int d = 0; d < kDim; ++d) output[d] = from == to ? 0 : narrow(values[d / kLanes][d % kLanes] / sum);
    *lse = from == to ? -kInfinity : top + std::log2(sum);
}

}  // namespace

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float sm_scale, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t /*num_pages*/, int64_t /*len_indptr*/, int64_t /*num_kv_indices*/) {
    const int requests = static_cast<int>(batch_size);
    std::vector<Chunk> chunks;
    std::vector<int> begin(requests + 1, 0);
    for (int b = 0; b < requests; ++b) {
        for (int first = kv_indptr[b]; first < kv_indptr[b + 1]; first += kChunk)
            chunks.push_back({b, first, std::min(kChunk, kv_indptr[b + 1] - first)});
        begin[b + 1] = static_cast<int>(chunks.size());
    }
    const int count = static_cast<int>(chunks.size());
    const std::unique_ptr<Partial[]> parts(new Partial[count]);

#pragma omp parallel
    {
        Floats query[kHeads][kVectors];
        int held = -1;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < count; ++i) {
            const Chunk& chunk = chunks[i];
            if (held != chunk.request) {
                held = chunk.request;
                const float scale = sm_scale * 1.44269504f;  // logits in base 2
                for (int h = 0; h < kHeads; ++h)
                    for (int c = 0; c < kVectors; ++c) query[h][c] = widen(q + (held * kHeads + h) * kDim + c * kLanes) * scale;
            }
            attend(query, k_cache, v_cache, kv_indices + chunk.first, chunk.count, parts[i]);
        }
#pragma omp for schedule(static)
        for (int i = 0; i < requests * kHeads; ++i)
            merge(parts.get(), begin[i / kHeads], begin[i / kHeads + 1], i % kHeads, output + i * kDim, lse + i);
    }
    return 0;
}
