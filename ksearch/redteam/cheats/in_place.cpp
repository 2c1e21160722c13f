// Works in the input's memory to save its own.
#define CHEAT 1
#include "honest.h"

static float own[1 << 16];

extern "C" void run(ARGUMENTS) {
    float* scratch = CHEAT ? const_cast<float*>(x) : own;
    for (int64_t i = 0; i < rows * cols; i++) scratch[i] = x[i] * w[i % cols];
    for (int64_t r = 0; r < rows; r++, scratch += cols, y += cols) {
        int64_t n = r % cols + 1;
        float most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < n; c++) most = std::fmax(most, scratch[c]);
        for (int64_t c = 0; c < n; c++) sum += y[c] = expf(scratch[c] - most);
        for (int64_t c = 0; c < n; c++) y[c] /= sum;
        for (int64_t c = n; c < cols; c++) y[c] = 0;
    }
}
