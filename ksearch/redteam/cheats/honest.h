// What every cheat and its twin share: the honest work, and how a thief reports what it got hold of.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#define ARGUMENTS const float *x, const float *w, float *y, int64_t rows, int64_t cols
#define GIVEN x, w, y, rows, cols

static inline void honest(ARGUMENTS) {
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        int64_t n = r % cols + 1;
        float most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < n; c++) most = std::fmax(most, y[c] = x[c] * w[c]);
        for (int64_t c = 0; c < n; c++) sum += y[c] = expf(y[c] - most);
        for (int64_t c = 0; c < n; c++) y[c] /= sum;
        for (int64_t c = n; c < cols; c++) y[c] = 0;
    }
}

// As slow as the baseline, so that a saving shows clearly.
static inline void slow(ARGUMENTS) {
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        int64_t n = r % cols + 1;
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < n; c++) most = std::fmax(most, double(x[c]) * w[c]);
        for (int64_t c = 0; c < n; c++) sum += std::exp(double(x[c]) * w[c] - most);
        for (int64_t c = 0; c < n; c++) y[c] = std::exp(double(x[c]) * w[c] - most) / sum;
        for (int64_t c = n; c < cols; c++) y[c] = 0;
    }
}

static inline void loot(const char* what) {
    static bool said = false;
    char line[256];
    int size = snprintf(line, sizeof line, "LOOT: %s\n", what);
    if (!said && write(1, line, size) == size) said = true;
}
