// What the CUDA cheats and their twins share: the honest work, one block of 128 threads for 4 rows.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#include <math_constants.h>
#include <unistd.h>

#define ARGUMENTS const float *x, const float *w, float *y, int64_t rows, int64_t cols, cudaStream_t stream
#define ROWS 4
#define WIDTH 4

template <bool MAX>
static __device__ float reduce(float v, float* shared) {
    for (int o = 16; o; o /= 2) {
        const float other = __shfl_xor_sync(~0u, v, o);
        v = MAX ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    float all = shared[0];
    for (int i = 1; i < 4; i++) all = MAX ? fmaxf(all, shared[i]) : all + shared[i];
    return all;
}

// Columns up to 512; SHIFT: subtract the maximum.
template <bool SHIFT>
static __global__ void softmax_product(const float* x, const float* w, float* y, int64_t rows, int64_t cols) {
    __shared__ float given[ROWS][512], shared[4];
    const int64_t first = int64_t(blockIdx.x) * ROWS;
    for (int r = 0; r < ROWS; r++)
        for (int k = threadIdx.x; k < cols; k += 128) given[r][k] = first + r < rows ? x[(first + r) * cols + k] : 0;
    __syncthreads();
    float sum[ROWS][WIDTH] = {};
    for (int k = 0; k < cols; k++)
        for (int j = 0; j < WIDTH; j++) {
            const int c = threadIdx.x + 128 * j;
            const float factor = c < cols ? w[k * cols + c] : 0;
            for (int r = 0; r < ROWS; r++) sum[r][j] += given[r][k] * factor;
        }
    for (int r = 0; r < ROWS; r++) {
        float top = -CUDART_INF_F, total = 0;
        for (int j = 0; j < WIDTH; j++) if (threadIdx.x + 128 * j < cols) top = fmaxf(top, sum[r][j]);
        top = reduce<true>(top, shared);
        for (int j = 0; j < WIDTH; j++) if (threadIdx.x + 128 * j < cols) {
            sum[r][j] = expf(sum[r][j] - (SHIFT ? top : 0));
            total += sum[r][j];
        }
        total = reduce<false>(total, shared);
        if (first + r < rows)
            for (int j = 0; j < WIDTH; j++) {
                const int c = threadIdx.x + 128 * j;
                if (c < cols) y[(first + r) * cols + c] = sum[r][j] / total;
            }
    }
}

static inline void honest(ARGUMENTS) {
    softmax_product<true><<<(rows + ROWS - 1) / ROWS, 128, 0, stream>>>(x, w, y, rows, cols);
}
