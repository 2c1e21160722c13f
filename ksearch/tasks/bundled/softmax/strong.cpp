// Row softmax with eight-wide vectors and a polynomial for the exponential.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

typedef float vec __attribute__((vector_size(32)));
typedef int32_t ivec __attribute__((vector_size(32)));
constexpr int64_t W = 8;

static inline vec load(const float* p) {
    vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float* p, vec v) { std::memcpy(p, &v, sizeof v); }

static inline vec splat(float a) { return a - vec{}; }

static inline vec max(vec a, vec b) { return a > b ? a : b; }

// exp(x) for x <= 0: 2^n * 2^f, f in [-0.5, 0.5], the Taylor polynomial of degree 7 in f * ln 2.
static inline vec exp_nonpositive(vec x) {
    const vec low = splat(-104.0f);
    const vec live = x > splat(-87.0f) ? splat(1.0f) : splat(0.0f);  // below: under the normal range
    x = max(x, low);
    const vec magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
    const vec t = x * 1.44269504f;
    const vec n = (t + magic) - magic;
    vec f = x - n * 0.693145752f;  // ln 2 in two parts, so that the reduction stays exact
    f = f - n * 1.42860677e-6f;
    vec p = splat(1.0f / 5040);
    p = p * f + 1.0f / 720;
    p = p * f + 1.0f / 120;
    p = p * f + 1.0f / 24;
    p = p * f + 1.0f / 6;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    ivec e = __builtin_convertvector(n, ivec) + 127;
    e = e < 1 ? ivec{} + 1 : e;
    e <<= 23;
    vec scale;
    std::memcpy(&scale, &e, sizeof scale);
    return p * scale * live;
}

extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols) {
    const float inf = std::numeric_limits<float>::infinity();
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        const int64_t whole = cols - cols % W, rest = cols - whole;
        float tail[W];  // the ragged end of the row, padded with scores that count for nothing
        for (int64_t c = 0; c < W; ++c) tail[c] = c < rest ? in[whole + c] : -inf;

        vec tops = load(tail);
        for (int64_t c = 0; c < whole; c += W) tops = max(tops, load(in + c));
        float top = tops[0];
        for (int64_t c = 1; c < W; ++c) top = tops[c] > top ? tops[c] : top;

        vec sums = exp_nonpositive(load(tail) - top);
        store(tail, sums);
        for (int64_t c = 0; c < whole; c += W) {
            const vec e = exp_nonpositive(load(in + c) - top);
            store(out + c, e);
            sums += e;
        }
        float sum = 0.0f;
        for (int64_t c = 0; c < W; ++c) sum += sums[c];

        const float scale = 1.0f / sum;
        for (int64_t c = 0; c < whole; c += W) store(out + c, load(out + c) * scale);
        for (int64_t c = 0; c < rest; ++c) out[whole + c] = tail[c] * scale;
    }
}
