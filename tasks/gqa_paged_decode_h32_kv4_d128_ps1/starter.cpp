// Paged grouped-query attention, one decode step: a plain kernel to start from.
//
// The work is cut into tasks (request, key/value head, part of the context). A task leaves, for each of its eight query
// heads, the largest logit, the sum of exponentials and the weighted sum of values; a second loop merges the parts.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

constexpr int kHeads = 32, kKvHeads = 4, kDim = 128, kGroup = kHeads / kKvHeads;

constexpr int kHeadsPerPass = 2;  // tune: heads_per_pass in {1, 2, 4, 8}
constexpr int kOnline = 0;        // tune: online_softmax in {0, 1}
constexpr int kSplits = 2;        // tune: splits in {1, 2, 4}
constexpr int kTokensOuter = 0;   // tune: tokens_outer in {0, 1}
constexpr int kWidth = 4;         // tune: width in {1, 4, 8, 16}

constexpr int kPasses = kGroup / kHeadsPerPass;
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

// What a task knows of one query head.
struct Partial {
    float top = -kInfinity;
    float sum = 0;
    Floats values[kChunks] = {};
};

// Dot products of one key row with the kHeadsPerPass queries of a pass.
void dots(const Floats (*query)[kChunks], const uint16_t* key, float scale, float* logits) {
    Floats sums[kHeadsPerPass] = {};
    for (int c = 0; c < kChunks; ++c) {
        Floats wide;
        widen(key + c * kWidth, wide);
        for (int h = 0; h < kHeadsPerPass; ++h) sums[h] += query[h][c] * wide;
    }
    for (int h = 0; h < kHeadsPerPass; ++h) {
        float lanes[kWidth], total = 0;
        std::memcpy(lanes, &sums[h], sizeof lanes);
        for (float lane : lanes) total += lane;
        logits[h] = total * scale;
    }
}

// Adds one value row, with a weight per head, to the heads of a pass.
void accumulate(Partial* part, const uint16_t* value, const float* weights) {
    for (int c = 0; c < kChunks; ++c) {
        Floats wide;
        widen(value + c * kWidth, wide);
        for (int h = 0; h < kHeadsPerPass; ++h) part[h].values[c] += weights[h] * wide;
    }
}

// One slot for the heads of a pass, keeping the running maximum up to date.
void online_step(const Floats (*query)[kChunks], const uint16_t* key, const uint16_t* value, float scale, Partial* part) {
    float logits[kHeadsPerPass];
    dots(query, key, scale, logits);
    for (int h = 0; h < kHeadsPerPass; ++h) {
        if (logits[h] > part[h].top) {
            const float shrink = std::exp(part[h].top - logits[h]);
            for (Floats& value : part[h].values) value *= shrink;
            part[h].sum *= shrink;
            part[h].top = logits[h];
        }
        logits[h] = std::exp(logits[h] - part[h].top);
        part[h].sum += logits[h];
    }
    accumulate(part, value, logits);
}

// Calls body(slot number, pass) in the order that kTokensOuter asks for.
template <typename Body>
void for_each_slot_and_pass(int count, Body body) {
    if (kTokensOuter) {
        for (int t = 0; t < count; ++t)
            for (int p = 0; p < kPasses; ++p) body(t, p);
    } else {
        for (int p = 0; p < kPasses; ++p)
            for (int t = 0; t < count; ++t) body(t, p);
    }
}

// All eight query heads of a key/value head over `count` slots.
void attend(const uint16_t* q, const uint16_t* keys, const uint16_t* values, const int32_t* slots, int count, float scale,
            Partial* part) {
    Floats query[kGroup][kChunks];
    for (int h = 0; h < kGroup; ++h)
        for (int c = 0; c < kChunks; ++c) widen(q + h * kDim + c * kWidth, query[h][c]);
    const auto row = [&](const uint16_t* cache, int t) { return cache + static_cast<int64_t>(slots[t]) * kKvHeads * kDim; };

    if (kOnline) {
        for_each_slot_and_pass(count, [&](int t, int p) {
            const int h = p * kHeadsPerPass;
            online_step(query + h, row(keys, t), row(values, t), scale, part + h);
        });
        return;
    }
    std::vector<float> logits(static_cast<size_t>(count) * kGroup);  // [pass][slot][head of the pass]
    const auto at = [&](int t, int p) { return &logits[(static_cast<size_t>(p) * count + t) * kHeadsPerPass]; };
    for_each_slot_and_pass(count, [&](int t, int p) { dots(query + p * kHeadsPerPass, row(keys, t), scale, at(t, p)); });
    for (int p = 0; p < kPasses; ++p)
        for (int h = 0; h < kHeadsPerPass; ++h) {
            Partial& mine = part[p * kHeadsPerPass + h];
            for (int t = 0; t < count; ++t) mine.top = std::max(mine.top, at(t, p)[h]);
            for (int t = 0; t < count; ++t) mine.sum += at(t, p)[h] = std::exp(at(t, p)[h] - mine.top);
        }
    for_each_slot_and_pass(count, [&](int t, int p) { accumulate(part + p * kHeadsPerPass, row(values, t), at(t, p)); });
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
    std::vector<Partial> parts(static_cast<size_t>(requests) * kKvHeads * kSplits * kGroup);

#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int b = 0; b < requests; ++b)
        for (int g = 0; g < kKvHeads; ++g)
            for (int s = 0; s < kSplits; ++s) {
                const int64_t length = kv_indptr[b + 1] - kv_indptr[b];
                const int64_t from = length * s / kSplits, to = length * (s + 1) / kSplits;
                attend(q + (b * kHeads + g * kGroup) * kDim, k_cache + g * kDim, v_cache + g * kDim,
                       kv_indices + kv_indptr[b] + from, static_cast<int>(to - from), sm_scale,
                       &parts[((b * kKvHeads + g) * kSplits + s) * kGroup]);
            }

#pragma omp parallel for
    for (int i = 0; i < requests * kHeads; ++i) {
        const int group = i / kGroup, head = i % kGroup;
        merge(&parts[group * kSplits * kGroup + head], kGroup, output + i * kDim, lse + i);
    }
    return 0;
}
