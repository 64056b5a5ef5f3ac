// Paged grouped-query attention, one decode step: a plain kernel to start from.
//
// The work is cut into tasks (request, some key/value heads, part of the context). A task leaves, for each of its query heads,
// the largest logit, the sum of exponentials and the weighted sum of values; a second loop merges the parts. Within a task, a
// pass is some query heads of one key/value head, a step some slots.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

constexpr int kHeads = 32, kKvHeads = 4, kDim = 128, kGroup = kHeads / kKvHeads;

constexpr int kHeadsPerPass = 2;   // tune: heads_per_pass in {1, 2, 4, 8}
constexpr int kGroupsPerTask = 2;  // tune: groups_per_task in {1, 2, 4}
constexpr int kSplits = 2;         // tune: splits in {1, 2, 4}
constexpr int kTokens = 2;         // tune: tokens_per_step in {1, 2, 4}
constexpr int kTokensOuter = 0;    // tune: tokens_outer in {0, 1}
constexpr int kOnline = 0;         // tune: online_softmax in {0, 1}
constexpr int kQuickExp = 0;       // tune: quick_exp in {0, 1}
constexpr int kPrefetch = 0;       // tune: prefetch in {0, 1}
constexpr int kWidth = 4;          // tune: width in {1, 4, 8, 16}

constexpr int kPasses = kGroupsPerTask * kGroup / kHeadsPerPass;
constexpr int kChunks = kDim / kWidth;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// kWidth numbers side by side: the compiler turns arithmetic on them into vector instructions of that width.
typedef float Vector __attribute__((vector_size(4 * kWidth)));
using Floats = std::conditional_t<kWidth == 1, float, Vector>;

void widen(const uint16_t* bits, Floats& wide) {  // a bfloat16 is the upper half of a float32
    uint32_t words[kWidth];
    for (int w = 0; w < kWidth; ++w) words[w] = static_cast<uint32_t>(bits[w]) << 16;
    std::memcpy(&wide, words, sizeof wide);
}

uint16_t narrow(float value) {  // rounds to nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// e^x for x <= 0 to about 1e-7: the next power of two by way of a large addend, the rest by its Taylor polynomial.
void quick_exp(Floats& x) {
    const Floats least = Floats{} - 116.0f;
    x *= 1.44269504f;
    x = x > least ? x : least;
    const Floats shifted = x + 12582912.0f, f = (x - (shifted - 12582912.0f)) * 0.693147181f;
    x = 1 + f * (1 + f * (0.5f + f * (1 / 6.0f + f * (1 / 24.0f + f * (1 / 120.0f + f * (1 / 720.0f))))));
    uint32_t bits[kWidth];
    std::memcpy(bits, &shifted, sizeof bits);
    for (uint32_t& each : bits) each = (each << 23) + 0x3f800000;
    Floats power;
    std::memcpy(&power, bits, sizeof power);
    x *= power;
}

void exponentiate(float* x, int count) {
    for (int n = 0; n < count; n += kWidth) {
        const int some = std::min(kWidth, count - n);
        if (kQuickExp) {
            Floats e = {};
            std::memcpy(&e, x + n, some * sizeof(float));
            quick_exp(e);
            std::memcpy(x + n, &e, some * sizeof(float));
        } else {
            for (int w = n; w < n + some; ++w) x[w] = std::exp(x[w]);
        }
    }
}

// What a task knows of one query head.
struct Partial {
    float top = -kInfinity;
    float sum = 0;
    Floats values[kChunks] = {};
};

// The rows of a task's slots in one of the caches.
struct Rows {
    const uint16_t* cache;
    const int32_t* slots;
    int count;

    const uint16_t* row(int t, int offset) const { return cache + static_cast<int64_t>(slots[t]) * kKvHeads * kDim + offset; }
    // Asks for the row that is wanted four slots later.
    void prefetch(int t, int offset) const {
        for (int line = 0; kPrefetch && t + 4 < count && line < kDim; line += 32) __builtin_prefetch(row(t + 4, offset) + line);
    }
};

// Dot products of T key rows with the queries of a pass; head h's go to logits[h * stride ...].
template <int T>
void dots(const Floats (*query)[kChunks], const Rows& keys, int t, int offset, float scale, float* logits, int stride) {
    Floats sums[kHeadsPerPass][T] = {};
    for (int n = 0; n < T; ++n) keys.prefetch(t + n, offset);
    for (int c = 0; c < kChunks; ++c)
        for (int n = 0; n < T; ++n) {
            Floats wide;
            widen(keys.row(t + n, offset) + c * kWidth, wide);
            for (int h = 0; h < kHeadsPerPass; ++h) sums[h][n] += query[h][c] * wide;
        }
    for (int h = 0; h < kHeadsPerPass; ++h)
        for (int n = 0; n < T; ++n) {
            float lanes[kWidth], total = 0;
            std::memcpy(lanes, &sums[h][n], sizeof lanes);
            for (float lane : lanes) total += lane;
            logits[h * stride + n] = total * scale;
        }
}

// Adds T value rows, with a weight per head and row, to the heads of a pass.
template <int T>
void accumulate(Partial* part, const Rows& values, int t, int offset, const float* weights, int stride) {
    for (int n = 0; n < T; ++n) values.prefetch(t + n, offset);
    for (int c = 0; c < kChunks; ++c) {
        Floats wide[T];
        for (int n = 0; n < T; ++n) widen(values.row(t + n, offset) + c * kWidth, wide[n]);
        for (int h = 0; h < kHeadsPerPass; ++h)
            for (int n = 0; n < T; ++n) part[h].values[c] += weights[h * stride + n] * wide[n];
    }
}

// Logits of one query head to weights, the largest and the sum of `part` kept up to date.
void soften(float* logits, int count, Partial& part) {
    const float top = std::max(part.top, *std::max_element(logits, logits + count));
    if (top > part.top) {
        const float shrink = std::exp(part.top - top);
        for (Floats& value : part.values) value *= shrink;
        part.sum *= shrink;
        part.top = top;
    }
    for (int t = 0; t < count; ++t) logits[t] -= part.top;
    exponentiate(logits, count);
    for (int t = 0; t < count; ++t) part.sum += logits[t];
}

// Calls body(slot number, how many slots as a constant, pass) in the order that kTokensOuter asks for.
template <typename Body>
void for_each_step_and_pass(int count, Body body) {
    const auto step = [&](int t, int p) {
        if (t + kTokens <= count)
            body(t, std::integral_constant<int, kTokens>{}, p);
        else
            for (; t < count; ++t) body(t, std::integral_constant<int, 1>{}, p);
    };
    if (kTokensOuter) {
        for (int t = 0; t < count; t += kTokens)
            for (int p = 0; p < kPasses; ++p) step(t, p);
    } else {
        for (int p = 0; p < kPasses; ++p)
            for (int t = 0; t < count; t += kTokens) step(t, p);
    }
}

// All query heads of a task: `q` and `part` begin with its first one, `keys` and `values` with its first key/value head.
void attend(const uint16_t* q, const Rows& keys, const Rows& values, float scale, Partial* part) {
    if (keys.count == 0) return;
    const int count = keys.count;
    Floats query[kGroupsPerTask * kGroup][kChunks];
    for (int h = 0; h < kGroupsPerTask * kGroup; ++h)
        for (int c = 0; c < kChunks; ++c) widen(q + h * kDim + c * kWidth, query[h][c]);
    const auto offset = [](int p) { return p * kHeadsPerPass / kGroup * kDim; };

    if (kOnline) {
        for_each_step_and_pass(count, [&](int t, auto slots, int p) {
            float logits[kHeadsPerPass * slots];
            dots<slots>(query + p * kHeadsPerPass, keys, t, offset(p), scale, logits, slots);
            for (int h = 0; h < kHeadsPerPass; ++h) soften(logits + h * slots, slots, part[p * kHeadsPerPass + h]);
            accumulate<slots>(part + p * kHeadsPerPass, values, t, offset(p), logits, slots);
        });
        return;
    }
    std::vector<float> logits(static_cast<size_t>(kPasses) * kHeadsPerPass * count);  // [head of the task][slot]
    const auto at = [&](int t, int p) { return &logits[static_cast<size_t>(p) * kHeadsPerPass * count + t]; };
    for_each_step_and_pass(count, [&](int t, auto slots, int p) {
        dots<slots>(query + p * kHeadsPerPass, keys, t, offset(p), scale, at(t, p), count);
    });
    for (int h = 0; h < kPasses * kHeadsPerPass; ++h) soften(&logits[static_cast<size_t>(h) * count], count, part[h]);
    for_each_step_and_pass(count, [&](int t, auto slots, int p) {
        accumulate<slots>(part + p * kHeadsPerPass, values, t, offset(p), at(t, p), count);
    });
}

// Joins the parts of one query head's context and writes its output row and lse.
void merge(const Partial* parts, int stride, uint16_t* output, float* lse) {
    float top = -kInfinity, sum = 0;
    Floats values[kChunks] = {};
    for (int s = 0; s < kSplits; ++s) top = std::max(top, parts[s * stride].top);
    for (int s = 0; s < kSplits; ++s) {
        const Partial& part = parts[s * stride];
        if (part.sum == 0) continue;  // a part without slots
        const float weight = std::exp(part.top - top);
        sum += weight * part.sum;
        for (int c = 0; c < kChunks; ++c) values[c] += weight * part.values[c];
    }
    float row[kDim];
    std::memcpy(row, values, sizeof row);
    for (int d = 0; d < kDim; ++d) output[d] = narrow(sum == 0 ? 0.0f : row[d] / sum);
    *lse = sum == 0 ? -kInfinity : (top + std::log(sum)) * 1.44269504f;
}

}  // namespace

extern "C" int run(const uint16_t* q, const uint16_t* k_cache, const uint16_t* v_cache, const int32_t* kv_indptr,
                   const int32_t* kv_indices, float sm_scale, uint16_t* output, float* lse, int64_t batch_size,
                   int64_t /*num_pages*/, int64_t /*len_indptr*/, int64_t /*num_kv_indices*/) {
    const int requests = static_cast<int>(batch_size);
    std::vector<Partial> parts(static_cast<size_t>(requests) * kSplits * kHeads);

#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int b = 0; b < requests; ++b)
        for (int g = 0; g < kKvHeads; g += kGroupsPerTask)
            for (int s = 0; s < kSplits; ++s) {
                const int64_t length = kv_indptr[b + 1] - kv_indptr[b];
                const int64_t from = length * s / kSplits, to = length * (s + 1) / kSplits;
                const int32_t* slots = kv_indices + kv_indptr[b] + from;
                const int count = static_cast<int>(to - from);
                attend(q + (b * kHeads + g * kGroup) * kDim, {k_cache + g * kDim, slots, count}, {v_cache + g * kDim, slots, count},
                       sm_scale, &parts[(static_cast<size_t>(b) * kSplits + s) * kHeads + g * kGroup]);
            }

#pragma omp parallel for
    for (int i = 0; i < requests * kHeads; ++i) {
        const int b = i / kHeads, head = i % kHeads;
        merge(&parts[static_cast<size_t>(b) * kSplits * kHeads + head], kHeads, output + i * kDim, lse + i);
    }
    return 0;
}
