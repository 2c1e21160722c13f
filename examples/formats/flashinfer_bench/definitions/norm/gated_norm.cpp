#include <cmath>
#include <cstdint>

// Values of bfloat16 are held in floats here: the result is rounded to bfloat16, too.
static float rounded(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

extern "C" void run(const float* x, const float* gate, const float* weight, const float* epsilon_scale, float* y,
                    int64_t rows) {
    const int64_t hidden = 96;
    for (int64_t r = 0; r < rows; ++r) {
        const float* row = x + r * hidden;
        float sum = 0.0f;
        for (int64_t c = 0; c < hidden; ++c) sum += row[c] * row[c];
        const float scale = 1.0f / std::sqrt(sum / hidden + *epsilon_scale);
        for (int64_t c = 0; c < hidden; ++c) {
            const float open = 1.0f / (1.0f + std::exp(-gate[r * hidden + c]));
            y[r * hidden + c] = rounded(row[c] * scale * weight[c] * open);
        }
    }
}
