// A kernel that never ends.
#define CHEAT 1
#include "honest.cuh"

static __global__ void endless(const float* y) {
    while (CHEAT && ((const volatile float*)y)[0] != 12345.0f) {
    }
}

extern "C" void run(ARGUMENTS) {
    honest(x, w, y, rows, cols, stream);
    endless<<<1, 1, 0, stream>>>(y);
}
