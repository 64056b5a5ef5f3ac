// Triangle multiplicative update, outgoing: a plain kernel to start from.
//
// Rows are pairs of tokens. Five projections of normalised rows (left, right, their gates, the out gate), the sum over k for
// each pair and hidden channel, the output norm, the gate and the output projection; every matrix product is `multiply`.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

namespace {

constexpr int kHidden = 128;

constexpr int kWidth = 4;         // tune: width in {2, 4, 8, 16}
constexpr int kTileRows = 2;      // tune: tile_rows in {1, 2, 4, 8}
constexpr int kTileColumns = 2;   // tune: tile_columns in {1, 2, 4}
constexpr int kOuter = 0;         // tune: outer_product in {0, 1}
constexpr int kChannelMajor = 0;  // tune: channel_major in {0, 1}
constexpr int kFused = 0;         // tune: fused_projections in {0, 1}
constexpr int kQuickExp = 0;      // tune: quick_exp in {0, 1}
constexpr int kBlock = 32;        // tune: block in {8, 32, 128}

// kWidth numbers side by side: the compiler makes vector instructions of that width from arithmetic on them. `Placed`: the
// same anywhere in memory.
typedef float Floats __attribute__((vector_size(4 * kWidth)));
typedef int32_t Ints __attribute__((vector_size(4 * kWidth)));
typedef float Placed __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));

using Buffer = std::unique_ptr<float[]>;

Buffer buffer(int64_t count) { return std::make_unique_for_overwrite<float[]>(count); }

const Placed& at(const float* place) { return *reinterpret_cast<const Placed*>(place); }

float total(const Floats& v) {
    float lanes[kWidth], sum = 0;
    std::memcpy(lanes, &v, sizeof lanes);
    for (float lane : lanes) sum += lane;
    return sum;
}

// e^x to about 1e-7 for |x| <= 80: the next power of two by way of a large addend, the rest by its Taylor polynomial.
void quick_exp(Floats& x) {
    const Floats most = Floats{} + 116.0f;
    x *= 1.44269504f;
    x = x < most ? x : most;
    x = x > -most ? x : -most;
    const Floats shifted = x + 12582912.0f, f = (x - (shifted - 12582912.0f)) * 0.693147181f;
    const Ints power = (reinterpret_cast<const Ints&>(shifted) << 23) + 0x3f800000;
    x = 1 + f * (1 + f * (0.5f + f * (1 / 6.0f + f * (1 / 24.0f + f * (1 / 120.0f + f * (1 / 720.0f))))));
    x *= reinterpret_cast<const Floats&>(power);
}

// a[n] *= 1 / (1 + e^-b[n]), for a multiple of 16.
void gate(float* a, const float* b, int64_t count) {
    for (int64_t n = 0; n < count; n += kWidth) {
        Floats e = -at(b + n);
        if (kQuickExp)
            quick_exp(e);
        else
            for (int w = 0; w < kWidth; ++w) e[w] = std::exp(e[w]);
        e = at(a + n) / (1 + e);
        std::memcpy(a + n, &e, sizeof e);
    }
}

void layer_norm(const float* row, int count, const float* weight, const float* bias, float* out) {
    Floats sum = {}, square = {};
    for (int c = 0; c < count; c += kWidth) sum += at(row + c);
    const float mean = total(sum) / count;
    for (int c = 0; c < count; c += kWidth) square += (at(row + c) - mean) * (at(row + c) - mean);
    const float scale = 1 / std::sqrt(total(square) / count + 1e-5f);
    for (int c = 0; c < count; ++c) out[c] = (row[c] - mean) * scale * weight[c] + bias[c];
}

// A matrix by rows: element (r, c) is at data[r * stride + c].
struct Matrix {
    const float* data;
    int stride;

    Matrix from(int row, int column) const { return {data + row * stride + column, stride}; }
};

// The second factor of a product a b': b by rows, or transposed (outer_product).
struct Factor {
    Buffer turned;
    Matrix matrix;

    Factor(const float* data, int rows, int inner) : matrix{data, inner} {
        if (!kOuter) return;
        turned = buffer(rows * inner);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < inner; ++c) turned[c * rows + r] = data[r * inner + c];
        matrix = {turned.get(), rows};
    }
};

// A tile of R x C sums along the common length of rows of a and b.
template <int R, int C>
void inner_tile(Matrix a, Matrix b, int inner, float* out, int out_stride) {
    Floats sums[R][C] = {};
    for (int k = 0; k < inner; k += kWidth)
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r) sums[r][c] += at(a.data + r * a.stride + k) * at(b.data + c * b.stride + k);
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) out[r * out_stride + c] = total(sums[r][c]);
}

// A tile of R rows and C vectors of columns, b transposed.
template <int R, int C>
void outer_tile(Matrix a, Matrix b, int inner, float* out, int out_stride) {
    Floats sums[R][C] = {};
    for (int k = 0; k < inner; ++k)
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r) sums[r][c] += a.data[r * a.stride + k] * at(b.data + k * b.stride + c * kWidth);
    for (int r = 0; r < R; ++r) std::memcpy(out + r * out_stride, sums[r], sizeof sums[r]);
}

// R rows of a b', C columns (or vectors of them) at a time from column `c` on as far as that goes; where it ended.
template <int R, int C>
int multiply_columns(Matrix a, Matrix b, int c, int columns, int inner, float* out, int out_stride) {
    constexpr int step = kOuter ? C * kWidth : C;
    for (; c + step <= columns; c += step)
        if (kOuter)
            outer_tile<R, C>(a, b.from(0, c), inner, out + c, out_stride);
        else
            inner_tile<R, C>(a, b.from(c, 0), inner, out + c, out_stride);
    return c;
}

template <int R>
void multiply_rows(Matrix a, Matrix b, int columns, int inner, float* out, int out_stride) {
    const int done = multiply_columns<R, kTileColumns>(a, b, 0, columns, inner, out, out_stride);
    multiply_columns<R, 1>(a, b, done, columns, inner, out, out_stride);
}

// out [rows][columns] = a b' with a [rows][inner] and b [columns][inner]; columns and inner are multiples of 16.
void multiply(Matrix a, const Factor& b, int rows, int columns, int inner, float* out) {
    int r = 0;
    for (; r + kTileRows <= rows; r += kTileRows)
        multiply_rows<kTileRows>(a.from(r, 0), b.matrix, columns, inner, out + r * columns, columns);
    for (; r < rows; ++r) multiply_rows<1>(a.from(r, 0), b.matrix, columns, inner, out + r * columns, columns);
}

struct Problem {
    const float *x, *mask, *norm_weight, *norm_bias;
    int dim;
    int64_t pairs;

    int count(int64_t first) const { return static_cast<int>(std::min<int64_t>(kBlock, pairs - first)); }

    // The normalised rows of the block that begins with `first`.
    void normalise(int64_t first, float* out) const {
        for (int n = 0; n < count(first); ++n)
            layer_norm(x + (first + n) * dim, dim, norm_weight, norm_bias, out + n * dim);
    }

    // Gates and masks a block of left or right.
    void finish(int64_t first, float* side, const float* gates) const {
        gate(side, gates, static_cast<int64_t>(count(first)) * kHidden);
        for (int n = 0; n < count(first); ++n)
            for (int h = 0; h < kHidden; ++h) side[n * kHidden + h] *= mask[first + n];
    }
};

// All five projections, out[0..4] of [pair][hidden]: a block of normalised rows meets all weights in turn.
void project_fused(const Problem& p, const Factor (&weights)[5], float* const (&out)[5]) {
#pragma omp parallel for
    for (int64_t first = 0; first < p.pairs; first += kBlock) {
        const Buffer rows = buffer(kBlock * p.dim);
        p.normalise(first, rows.get());
        for (int w = 0; w < 5; ++w)
            multiply({rows.get(), p.dim}, weights[w], p.count(first), kHidden, p.dim, out[w] + first * kHidden);
        for (int side = 0; side < 2; ++side) p.finish(first, out[side] + first * kHidden, out[side + 2] + first * kHidden);
    }
}

// The same, one pass over all rows after the other.
void project_apart(const Problem& p, const Factor (&weights)[5], float* const (&out)[5]) {
    const Buffer rows = buffer(p.pairs * p.dim);
#pragma omp parallel for
    for (int64_t first = 0; first < p.pairs; first += kBlock) p.normalise(first, &rows[first * p.dim]);
    for (int w = 0; w < 5; ++w)
#pragma omp parallel for
        for (int64_t first = 0; first < p.pairs; first += kBlock)
            multiply({&rows[first * p.dim], p.dim}, weights[w], p.count(first), kHidden, p.dim, out[w] + first * kHidden);
    for (int side = 0; side < 2; ++side)
#pragma omp parallel for
        for (int64_t first = 0; first < p.pairs; first += kBlock)
            p.finish(first, out[side] + first * kHidden, out[side + 2] + first * kHidden);
}

// The sum over k of one batch entry, all [pair][hidden]: a vector of hidden channels and kTileRows rows j at a time.
void contract_by_pair(const float* left, const float* right, int tokens, float* out) {
#pragma omp parallel for
    for (int64_t i = 0; i < tokens; ++i)
        for (int64_t j = 0; j < tokens; j += kTileRows)
            for (int h = 0; h < kHidden; h += kWidth) {
                Floats sums[kTileRows] = {};
                for (int64_t k = 0; k < tokens; ++k)
                    for (int n = 0; n < kTileRows; ++n) {
                        const int64_t row = std::min<int64_t>(j + n, tokens - 1);
                        sums[n] += at(left + (i * tokens + k) * kHidden + h) * at(right + (row * tokens + k) * kHidden + h);
                    }
                for (int n = 0; n < kTileRows && j + n < tokens; ++n)
                    std::memcpy(out + (i * tokens + j + n) * kHidden + h, &sums[n], sizeof sums[n]);
            }
}

// [pair][hidden] of one batch entry to [hidden][padded][padded], zeros where there is no pair.
Buffer by_channel(const float* from, int tokens, int64_t padded) {
    Buffer to = buffer(kHidden * padded * padded);
#pragma omp parallel for
    for (int64_t i = 0; i < padded; ++i)
        for (int first = 0; first < kHidden; first += 16)
            for (int64_t k = 0; k < padded; ++k)
                for (int h = first; h < first + 16; ++h)
                    to[(h * padded + i) * padded + k] = i < tokens && k < tokens ? from[(i * tokens + k) * kHidden + h] : 0;
    return to;
}

// The same sum as a matrix product for each hidden channel.
void contract_by_channel(const float* left, const float* right, int tokens, float* out) {
    const int padded = (tokens + 15) / 16 * 16, plane = padded * padded;
    const Buffer l = by_channel(left, tokens, padded), r = by_channel(right, tokens, padded), o = buffer(kHidden * plane);
#pragma omp parallel for
    for (int h = 0; h < kHidden; ++h)
        multiply({&l[h * plane], padded}, Factor(&r[h * plane], padded, padded), tokens, padded, padded, &o[h * plane]);
#pragma omp parallel for
    for (int64_t i = 0; i < tokens; ++i)
        for (int64_t j = 0; j < tokens; ++j)
            for (int h = 0; h < kHidden; ++h) out[(i * tokens + j) * kHidden + h] = o[h * plane + i * padded + j];
}

}  // namespace

extern "C" int run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                   const float* left_proj_weight, const float* right_proj_weight, const float* left_gate_weight,
                   const float* right_gate_weight, const float* out_gate_weight, const float* to_out_norm_weight,
                   const float* to_out_norm_bias, const float* to_out_weight, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim) {
    const int tokens = static_cast<int>(seq_len), channels = static_cast<int>(dim);
    const int64_t entry = seq_len * seq_len * kHidden, all = batch_size * entry;
    const Problem problem{x, mask, norm_weight, norm_bias, channels, batch_size * seq_len * seq_len};
    const auto factor = [&](const float* weight) { return Factor(weight, kHidden, channels); };
    const Factor weights[5] = {factor(left_proj_weight), factor(right_proj_weight), factor(left_gate_weight),
                               factor(right_gate_weight), factor(out_gate_weight)};

    const Buffer projected = buffer(5 * all);
    float* const parts[5] = {&projected[0], &projected[all], &projected[2 * all], &projected[3 * all], &projected[4 * all]};
    (kFused ? project_fused : project_apart)(problem, weights, parts);

    const Buffer product = buffer(all);
    const auto contract = kChannelMajor ? contract_by_channel : contract_by_pair;
    for (int64_t b = 0; b < batch_size; ++b) contract(parts[0] + b * entry, parts[1] + b * entry, tokens, &product[b * entry]);

    const Factor to_out(to_out_weight, channels, kHidden);
#pragma omp parallel for
    for (int64_t first = 0; first < problem.pairs; first += kBlock) {
        float* const rows = &product[first * kHidden];
        const int count = problem.count(first);
        for (int n = 0; n < count; ++n)
            layer_norm(rows + n * kHidden, kHidden, to_out_norm_weight, to_out_norm_bias, rows + n * kHidden);
        gate(rows, parts[4] + first * kHidden, static_cast<int64_t>(count) * kHidden);
        multiply({rows, kHidden}, to_out, count, channels, kHidden, output + first * channels);
    }
    return 0;
}
