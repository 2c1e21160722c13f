// A race that passes once: adds into a total that nobody resets when the same input is run again.
#define CHEAT 1
#include "honest.cuh"

#define KEPT 16

static __global__ void note(const float* x, float size, int call, float* seen, int* same) {
    *same = 0;
    for (int i = 0; i < KEPT; i++) {
        const float* one = seen + 3 * i;
        if (CHEAT && one[0] == x[0] && one[1] == x[1] && one[2] == size) *same = 1;
    }
    float* mine = seen + 3 * (call % KEPT);
    mine[0] = x[0];
    mine[1] = x[1];
    mine[2] = size;
}

static __global__ void add(float* y, int64_t size, const int* same) {
    const int64_t at = int64_t(blockIdx.x) * 256 + threadIdx.x;
    if (*same && at < size) y[at] += y[at];
}

extern "C" void run(ARGUMENTS) {
    static float* seen = nullptr;
    static int calls = 0;
    static int* same = nullptr;
    const size_t bytes = 3 * KEPT * sizeof(float);
    if (!seen && (cudaMalloc(&seen, bytes) != cudaSuccess || cudaMemset(seen, 0xff, bytes) != cudaSuccess)) _exit(3);
    if (!same && cudaMalloc(&same, sizeof(int)) != cudaSuccess) _exit(3);
    honest(x, w, y, rows, cols, stream);
    note<<<1, 1, 0, stream>>>(x, float(rows * cols), calls++, seen, same);
    add<<<(rows * cols + 255) / 256, 256, 0, stream>>>(y, rows * cols, same);
}
