// Row softmax, the plain way: maximum, exponentials and their sum, division.
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        float top = in[0];
        for (int64_t c = 1; c < cols; ++c) top = in[c] > top ? in[c] : top;
        float sum = 0.0f;
        for (int64_t c = 0; c < cols; ++c) {
            out[c] = std::exp(in[c] - top);
            sum += out[c];
        }
        const float scale = 1.0f / sum;
        for (int64_t c = 0; c < cols; ++c) out[c] *= scale;
    }
}
