// Triangle multiplicative update, outgoing: the fused expert kernel.
//
// Everything moves in panels: the pairs (i .. i + kPanel - 1, k) of one k, channel after channel, each channel's pairs side
// by side in two vectors. So a LayerNorm needs no sum across lanes, weights are what is broadcast, and a panel of left or
// right is already packed as the sum over k wants it. Three passes: left and right, gated in registers, stored by hidden
// channel; the sum over k, a matrix product for each hidden channel; then output norm, gate (from x once more, which is
// cheaper than to store it) and output projection.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace {

#ifdef __AVX512F__
constexpr int kLanes = 16, kRows = 12;
#else
constexpr int kLanes = 8, kRows = 6;  // 6 x 2 sums, 2 vectors and a broadcast fill the 16 registers
#endif
constexpr int kHidden = 128, kPanel = 2 * kLanes, kPairs = kRows / 2;
constexpr int kGroup = 4;  // panels that share a pass over the weights
constexpr int kSideTiles = (kHidden + kPairs - 1) / kPairs, kGateTiles = (kHidden + kRows - 1) / kRows;
constexpr int kSpot = kHidden * kPanel + kPanel;  // floats from panel to panel of the product; no power of two, for the caches
constexpr float kEps = 1e-5f;

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));

struct Free {
    void operator()(float* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
using Scratch = std::unique_ptr<float[], Free>;

Scratch scratch(int64_t count) { return Scratch(new (std::align_val_t{64}) float[count]); }

struct Norm {
    const float *weight, *bias;
};

struct Sizes {
    int batch, tokens, dim, panels;
    int64_t side() const { return (static_cast<int64_t>(panels) * tokens + 3) * kPanel; }  // floats of a hidden channel
};

inline Floats load(const float* from) {
    Floats v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

inline void store(float* to, Floats v) { std::memcpy(to, &v, sizeof v); }

// Keeps a vector in a register, where the compiler would load it anew for every use.
inline void keep([[maybe_unused]] Floats& v) {
#ifdef __x86_64__
    asm("" : "+v"(v));
#endif
}

// 1 / (1 + e^-x) to a few units in the last place: 2^t by rounding with a large addend and the rest's Taylor polynomial.
inline Floats sigmoid(Floats x) {
    const Floats limit = Floats{} + 126.0f;
    Floats t = x * -1.44269504f;
    t = t < limit ? t : limit;
    t = t > -limit ? t : -limit;
    const Floats shifted = t + 12582912.0f;
    const Floats f = t - (shifted - 12582912.0f);
    Floats p = Floats{} + 1.54035304e-4f;
    p = p * f + 1.33335581e-3f;
    p = p * f + 9.61812911e-3f;
    p = p * f + 5.55041087e-2f;
    p = p * f + 2.40226507e-1f;
    p = p * f + 6.93147181e-1f;
    p = p * f + 1.0f;
    const Ints power = (reinterpret_cast<Ints>(shifted) << 23) + 0x3f800000;
    return 1.0f / (1.0f + p * reinterpret_cast<Floats>(power));
}

// sums[r] = the sum of a[r] * b over `count` steps; a step of `a` is `stride` floats, one of `b` a panel's. Never inlined: in
// company, the compiler does not keep all sums in registers.
template <int Rows>
[[gnu::noinline]] void product(const float* a, int stride, const float* b, int count, Floats (&sums)[Rows][2]) {
    Floats own[Rows][2] = {};
    for (int k = 0; k < count; ++k, a += stride, b += kPanel) {
        Floats b0 = load(b), b1 = load(b + kLanes);
        keep(b0), keep(b1);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
            own[r][0] += a[r] * b0;
            own[r][1] += a[r] * b1;
        }
    }
    std::memcpy(sums, own, sizeof own);
}

// Calls body(first row, number of rows as a constant) for all rows of a panel.
template <typename Body>
inline void for_each_rows(Body body) {
    int r = 0;
    for (; r + kRows <= kPanel; r += kRows) body(r, std::integral_constant<int, kRows>{});
    body(r, std::integral_constant<int, kPanel % kRows>{});
}

// Transposes kLanes vectors: each round shuffles the first half of them into the second like a deck of cards.
inline void transpose(Floats (&rows)[kLanes]) {
    Ints low, high;
    for (int l = 0; l < kLanes; ++l) {
        low[l] = l / 2 + l % 2 * kLanes;
        high[l] = low[l] + kLanes / 2;
    }
    for (int round = 1; round < kLanes; round *= 2) {
        Floats mixed[kLanes];
        for (int r = 0; r < kLanes / 2; ++r) {
            mixed[2 * r] = __builtin_shuffle(rows[r], rows[r + kLanes / 2], low);
            mixed[2 * r + 1] = __builtin_shuffle(rows[r], rows[r + kLanes / 2], high);
        }
        std::copy(mixed, mixed + kLanes, rows);
    }
}

// LayerNorm over the `channels` of a panel, in place.
inline void normalise(float* panel, int channels, Norm norm) {
    Floats mean[2] = {}, square[2] = {};
    for (int c = 0; c < channels; ++c)
        for (int v = 0; v < 2; ++v) mean[v] += load(panel + c * kPanel + v * kLanes);
    for (Floats& each : mean) each /= static_cast<float>(channels);
    for (int c = 0; c < channels; ++c)
        for (int v = 0; v < 2; ++v) {
            const Floats off = load(panel + c * kPanel + v * kLanes) - mean[v];
            square[v] += off * off;
        }
    for (Floats& each : square) {
        each = each / static_cast<float>(channels) + kEps;
        for (int l = 0; l < kLanes; ++l) each[l] = 1.0f / std::sqrt(each[l]);
    }
    for (int c = 0; c < channels; ++c)
        for (int v = 0; v < 2; ++v) {
            float* at = panel + c * kPanel + v * kLanes;
            store(at, (load(at) - mean[v]) * square[v] * norm.weight[c] + norm.bias[c]);
        }
}

// The normalised panel of the pairs (first .. , k) of one batch entry; `count` of them exist, the others are zero at first.
void gather(const float* x, const Sizes& sizes, int first, int k, int count, Norm norm, float* panel) {
    for (int v = 0; v < 2; ++v)
        for (int c = 0; c < sizes.dim; c += kLanes) {
            Floats rows[kLanes] = {};
            for (int l = 0; l < kLanes && v * kLanes + l < count; ++l)
                rows[l] = load(x + (static_cast<int64_t>(first + v * kLanes + l) * sizes.tokens + k) * sizes.dim + c);
            transpose(rows);
            for (int l = 0; l < kLanes; ++l) store(panel + (c + l) * kPanel + v * kLanes, rows[l]);
        }
    normalise(panel, sizes.dim, norm);
}

// A matrix for `product`: tiles of kRows rows, step after step.
struct Packed {
    Scratch memory;
    int64_t tile;  // floats

    Packed(int tiles, int inner) : memory(scratch(int64_t{kRows} * inner * tiles)), tile(int64_t{kRows} * inner) {}
    float* at(int number) const { return memory.get() + number * tile; }
};

// Rows [from, from + count) of a weight [kHidden][dim] to a tile; rows beyond the last are zero.
void pack_rows(const float* weight, int dim, int from, int count, float* packed) {
    for (int r = 0; r < count; ++r)
        for (int c = 0; c < dim; ++c) packed[c * kRows + r] = from + r < kHidden ? weight[(from + r) * dim + c] : 0.0f;
}

// The columns of the output projection in panels of kPanel.
void pack_columns(const float* weight, int c, float* packed) {
    for (int h = 0; h < kHidden; ++h) packed[(c / kPanel * kHidden + h) * kPanel + c % kPanel] = weight[c * kHidden + h];
}

// One side, left or right, of `count` panels: projection times gate times mask, stored for each hidden channel.
void project(const Packed& packed, const float* panels, const Floats (*mask)[2], int count, int dim, float* side, int64_t channel) {
    for (int tile = 0; tile < kSideTiles; ++tile)
        for (int g = 0; g < count; ++g) {
            Floats sums[kRows][2];
            product(packed.at(tile), kRows, panels + static_cast<int64_t>(g) * dim * kPanel, dim, sums);
            for (int h = 0; h < kPairs && tile * kPairs + h < kHidden; ++h)
                for (int v = 0; v < 2; ++v)
                    store(side + (tile * kPairs + h) * channel + g * kPanel + v * kLanes,
                          sums[h][v] * sigmoid(sums[kPairs + h][v]) * mask[g][v]);
        }
}

// The sum over k of one hidden channel: pairs (i .. , j) for all panels of i and every j.
void contract(const float* left, const float* right, const Sizes& sizes, float* out) {
    const int tokens = sizes.tokens;
    const int64_t panel = static_cast<int64_t>(tokens) * kPanel;
    for (int jp = 0; jp < sizes.panels; ++jp)
        for (int ip = 0; ip < sizes.panels; ++ip)
            for_each_rows([&](int r, auto rows) {
                const int j = jp * kPanel + r;
                if (j >= tokens) return;
                Floats sums[rows][2];
                product(right + jp * panel + r, kPanel, left + ip * panel, tokens, sums);
                for (int n = 0; n < rows && j + n < tokens; ++n) {
                    float* at = out + (static_cast<int64_t>(ip) * tokens + j + n) * kSpot;
                    store(at, sums[n][0]);
                    store(at + kLanes, sums[n][1]);
                }
            });
}

// Multiplies a panel of kHidden channels with the sigmoid of its gates.
void gate(const Packed& packed, const float* pairs, int dim, float* panel) {
    for (int tile = 0; tile < kGateTiles; ++tile) {
        Floats sums[kRows][2];
        product(packed.at(tile), kRows, pairs, dim, sums);
        for (int r = 0; r < kRows && tile * kRows + r < kHidden; ++r)
            for (int v = 0; v < 2; ++v) {
                float* at = panel + (tile * kRows + r) * kPanel + v * kLanes;
                store(at, load(at) * sigmoid(sums[r][v]));
            }
    }
}

// Output projection of a panel; pair number n of `count` goes to output + n * stride.
void emit(const float* packed, const float* panel, int dim, int count, int64_t stride, float* output) {
    for (int c = 0; c < dim; c += kPanel)
        for_each_rows([&](int r, auto rows) {
            if (r >= count) return;
            Floats sums[rows][2];
            product(panel + r, kPanel, packed + static_cast<int64_t>(c) * kHidden, kHidden, sums);
            for (int n = 0; n < rows && r + n < count; ++n) {
                store(output + (r + n) * stride + c, sums[n][0]);
                store(output + (r + n) * stride + c + kLanes, sums[n][1]);
            }
        });
}

// The masks of panels (first .. , k) to (first .. , k + kGroup - 1), zero where there is no pair.
void gather_mask(const float* mask, int tokens, int first, int k, Floats (*kept)[2]) {
    float lanes[kGroup][kPanel] = {};
    for (int g = 0; g < std::min(kGroup, tokens - k); ++g)
        for (int n = 0; n < std::min(kPanel, tokens - first); ++n)
            lanes[g][n] = mask[static_cast<int64_t>(first + n) * tokens + k + g];
    std::memcpy(kept, lanes, sizeof lanes);
}

}  // namespace

extern "C" int run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                   const float* left_proj_weight, const float* right_proj_weight, const float* left_gate_weight,
                   const float* right_gate_weight, const float* out_gate_weight, const float* to_out_norm_weight,
                   const float* to_out_norm_bias, const float* to_out_weight, float* output, int64_t batch_size,
                   int64_t seq_len, int64_t dim_) {
    const int batch = static_cast<int>(batch_size), tokens = static_cast<int>(seq_len), dim = static_cast<int>(dim_);
    const Sizes sizes{batch, tokens, dim, (tokens + kPanel - 1) / kPanel};
    const int64_t entry = seq_len * seq_len, channel = sizes.side();
    const float* const projections[2] = {left_proj_weight, right_proj_weight};
    const float* const gates[2] = {left_gate_weight, right_gate_weight};
    const Packed packed[2] = {{kSideTiles, dim}, {kSideTiles, dim}}, packed_gate(kGateTiles, dim);
    const Scratch packed_out = scratch(dim_ * kHidden), sums = scratch(batch_size * sizes.panels * tokens * kSpot);
    const Scratch sides[2] = {scratch(batch * kHidden * channel), scratch(batch * kHidden * channel)};

#pragma omp parallel
    {
        const Scratch own = scratch(kGroup * kPanel * dim_);
#pragma omp for collapse(2) schedule(static) nowait
        for (int s = 0; s < 2; ++s)
            for (int tile = 0; tile < kSideTiles; ++tile) {
                pack_rows(projections[s], dim, tile * kPairs, kPairs, packed[s].at(tile));
                pack_rows(gates[s], dim, tile * kPairs, kPairs, packed[s].at(tile) + kPairs);
            }
#pragma omp for schedule(static) nowait
        for (int tile = 0; tile < kGateTiles; ++tile) pack_rows(out_gate_weight, dim, tile * kRows, kRows, packed_gate.at(tile));
#pragma omp for schedule(static)
        for (int c = 0; c < dim; ++c) pack_columns(to_out_weight, c, packed_out.get());

#pragma omp for collapse(3) schedule(dynamic)
        for (int b = 0; b < batch; ++b)
            for (int ip = 0; ip < sizes.panels; ++ip)
                for (int k = 0; k < tokens; k += kGroup) {
                    const int count = std::min(kGroup, tokens - k), first = ip * kPanel;
                    Floats kept[kGroup][2];
                    gather_mask(mask + b * entry, tokens, first, k, kept);
                    for (int g = 0; g < count; ++g)
                        gather(x + b * entry * dim, sizes, first, k + g, std::min(kPanel, tokens - first), {norm_weight, norm_bias},
                               own.get() + g * kPanel * dim_);
                    for (int s = 0; s < 2; ++s)
                        project(packed[s], own.get(), kept, count, dim,
                                sides[s].get() + b * kHidden * channel + (static_cast<int64_t>(ip) * tokens + k) * kPanel, channel);
                }

#pragma omp for collapse(2) schedule(dynamic)
        for (int b = 0; b < batch; ++b)
            for (int h = 0; h < kHidden; ++h)
                contract(sides[0].get() + (b * kHidden + h) * channel, sides[1].get() + (b * kHidden + h) * channel, sizes,
                         sums.get() + static_cast<int64_t>(b) * sizes.panels * tokens * kSpot + h * kPanel);

#pragma omp for collapse(3) schedule(dynamic, 4)
        for (int b = 0; b < batch; ++b)
            for (int ip = 0; ip < sizes.panels; ++ip)
                for (int j = 0; j < tokens; ++j) {
                    const int first = ip * kPanel, count = std::min(kPanel, tokens - first);
                    float* const panel = sums.get() + ((static_cast<int64_t>(b) * sizes.panels + ip) * tokens + j) * kSpot;
                    gather(x + b * entry * dim, sizes, first, j, count, {norm_weight, norm_bias}, own.get());
                    normalise(panel, kHidden, {to_out_norm_weight, to_out_norm_bias});
                    gate(packed_gate, own.get(), dim, panel);
                    emit(packed_out.get(), panel, dim, count, seq_len * dim, output + (b * entry + first * seq_len + j) * dim);
                }
    }
    return 0;
}
