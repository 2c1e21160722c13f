// Writes where nothing is: no kernel works in this process any more.
#define CHEAT 1
#include "honest.cuh"

static __global__ void wild(float* y) {
    if (CHEAT) y[1ull << 45] = 1;
}

extern "C" void run(ARGUMENTS) {
    honest(x, w, y, rows, cols, stream);
    wild<<<1, 1, 0, stream>>>(y);
}
