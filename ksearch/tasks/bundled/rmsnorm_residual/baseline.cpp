// RMSNorm after a residual addition, the plain way: one pass to add and square, one to scale.
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* residual, const float* weight, float* y,
                    float* residual_out, int64_t tokens, int64_t hidden) {
    constexpr float epsilon = 1e-6f;
    for (int64_t t = 0; t < tokens; ++t) {
        const int64_t row = t * hidden;
        float sum = 0.0f;
        for (int64_t h = 0; h < hidden; ++h) {
            const float total = x[row + h] + residual[row + h];
            residual_out[row + h] = total;
            sum += total * total;
        }
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(hidden) + epsilon);
        for (int64_t h = 0; h < hidden; ++h) y[row + h] = residual_out[row + h] * scale * weight[h];
    }
}
