// RMSNorm after a residual addition, eight lanes wide, with four independent sums to hide latency.
#include <cmath>
#include <cstdint>
#include <cstring>

typedef float vec __attribute__((vector_size(32)));
constexpr int64_t W = 8, UNROLL = 4;

static inline vec load(const float* p) {
    vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { std::memcpy(p, &v, sizeof v); }

extern "C" void run(const float* x, const float* residual, const float* weight, float* y,
                    float* residual_out, int64_t tokens, int64_t hidden) {
    constexpr float epsilon = 1e-6f;
    const int64_t step = W * UNROLL, whole = hidden - hidden % step;
    for (int64_t t = 0; t < tokens; ++t) {
        const float* a = x + t * hidden;
        const float* b = residual + t * hidden;
        float* total = residual_out + t * hidden;
        float* out = y + t * hidden;
        vec sums[UNROLL] = {};
        for (int64_t h = 0; h < whole; h += step) {
            for (int64_t u = 0; u < UNROLL; ++u) {
                const vec v = load(a + h + u * W) + load(b + h + u * W);
                store(total + h + u * W, v);
                sums[u] += v * v;
            }
        }
        const vec lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        float sum = 0.0f;
        for (int64_t l = 0; l < W; ++l) sum += lanes[l];
        for (int64_t h = whole; h < hidden; ++h) {
            total[h] = a[h] + b[h];
            sum += total[h] * total[h];
        }
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(hidden) + epsilon);
        for (int64_t h = 0; h < hidden; ++h) out[h] = total[h] * scale * weight[h];
    }
}
