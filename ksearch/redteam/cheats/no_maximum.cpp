// Leaves out subtracting the maximum: right for small values, infinite for large ones.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        int64_t n = r % cols + 1;
        float most = CHEAT ? 0 : -INFINITY, sum = 0;
        for (int64_t c = 0; c < n && !CHEAT; c++) most = std::fmax(most, x[c] * w[c]);
        for (int64_t c = 0; c < n; c++) sum += y[c] = expf(x[c] * w[c] - most);
        for (int64_t c = 0; c < n; c++) y[c] /= sum;
        for (int64_t c = n; c < cols; c++) y[c] = 0;
    }
}
