// Slow on purpose: the exponentials are computed twice, in double precision.
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        int64_t n = r % cols + 1;
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < n; c++) most = std::fmax(most, double(x[c]) * w[c]);
        for (int64_t c = 0; c < n; c++) sum += std::exp(double(x[c]) * w[c] - most);
        for (int64_t c = 0; c < n; c++) y[c] = std::exp(double(x[c]) * w[c] - most) / sum;
        for (int64_t c = n; c < cols; c++) y[c] = 0;
    }
}
