// Matrix product, the plain way: row of a times matrix b, the innermost loop along the rows of b and c.
#include <cstdint>

extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; ++i) {
        float* out = c + i * n;
        for (int64_t j = 0; j < n; ++j) out[j] = 0.0f;
        for (int64_t p = 0; p < k; ++p) {
            const float factor = a[i * k + p];
            const float* row = b + p * n;
            for (int64_t j = 0; j < n; ++j) out[j] += factor * row[j];
        }
    }
}
