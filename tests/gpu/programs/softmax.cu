// One block of 256 threads per row, three passes.
#include <cstdint>
#include <cuda_runtime.h>
#include <math_constants.h>

template <bool MAX>
__device__ float reduce(float v, float* shared) {
    for (int o = 16; o; o /= 2) {
        const float w = __shfl_xor_sync(~0u, v, o);
        v = MAX ? fmaxf(v, w) : v + w;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    float all = shared[0];
    for (int i = 1; i < 8; i++) all = MAX ? fmaxf(all, shared[i]) : all + shared[i];
    return all;
}

__global__ void softmax(const float* x, float* y, int64_t cols) {
    __shared__ float shared[8];
    const float* in = x + blockIdx.x * cols;
    float* out = y + blockIdx.x * cols;
    float top = -CUDART_INF_F, sum = 0;
    for (int64_t c = threadIdx.x; c < cols; c += 256) top = fmaxf(top, in[c]);
    top = reduce<true>(top, shared);
    for (int64_t c = threadIdx.x; c < cols; c += 256) sum += __expf(in[c] - top);
    sum = reduce<false>(sum, shared);
    for (int64_t c = threadIdx.x; c < cols; c += 256) out[c] = __expf(in[c] - top) / sum;
}

extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream) {
    softmax<<<rows, 256, 0, stream>>>(x, y, cols);
}
