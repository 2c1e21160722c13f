"""Triangle multiplication, outgoing: stage 3 by the copy engine; weights prepared by more blocks; masks asked for a tile ahead.

CUDA kernels compiled by NVRTC for c of 128, 256 and 384; PyTorch for every other c. The sum over k is one batched
product by cuBLAS. All products take fp16 and sum in fp32; left is scaled by 1/32, and the second epsilon with it.
"""

import ctypes

import torch
from cuda.bindings import driver, nvrtc
from torch.nn import functional

torch.backends.cuda.matmul.allow_tf32 = True
HIDDEN = 128
SCALE = 1 / 32
EPSILON = 1e-5
FIRST = r"""
// Stages 1 and 3 of triangle multiplication for sm_90a. C is defined by the caller: 128, 256 or 384.
#ifndef SHARED
#define SHARED 0  // 1: two blocks share the stream of weights
#endif
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
#define H 128
#define KB (C / 64)           // blocks of 64 channels
#define UNITS (5 * KB)        // weight tiles of 16 KB: two slots of 64 h by 64 channels
#define RESIDENT (C == 128)
#define STAGE_ROW 144         // bytes: 64 pairs and padding
#define STAGE (64 * STAGE_ROW)

__device__ __forceinline__ u32 smem_of(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 half2_of(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ __forceinline__ float2 floats_of(u32 v) {
    float2 r;
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(r.x), "=f"(r.y) : "r"(v));
    return r;
}
__device__ __forceinline__ u16 half_of(float v) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ u32 add2(u32 a, u32 b) { u32 r; asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 mul2(u32 a, u32 b) { u32 r; asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
__device__ __forceinline__ u32 open2(u32 half_logits) {  // two sigmoids; the logits are halved already
    u32 t, r;
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(t) : "r"(half_logits));
    asm("fma.rn.f16x2 %0, %1, %2, %2;" : "=r"(r) : "r"(t), "r"(0x38003800u));
    return r;
}
__device__ __forceinline__ float quad_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}
__device__ __forceinline__ void bar_sync(int id, int count) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }
__device__ __forceinline__ void mbar_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count)); }
__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity) {
    asm volatile(
        "{.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:}"
        ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(u32 to, const void* from, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
__device__ __forceinline__ u64 describe(u32 at) {  // K-major, 128-byte swizzle, 8 rows are 1024 bytes
    return (u64)((at & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
__device__ __forceinline__ void wgmma(float (&d)[32], const u32 (&a)[4], u64 b, int add) {
    asm volatile(
        "{.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
// Nothing that reads these accumulators may move before this place.
template <int N> __device__ __forceinline__ void settle(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}
// weights: units of 16 KB as shared memory wants them; bias: 5 x 128; back: w_out in tiles of 64 columns by 64 h.
// The fragments of an operand in registers take columns 4q..4q+3 of 16 as positions 2q, 2q+1, 2q+8, 2q+9.
extern "C" __global__ void __launch_bounds__(512) prepare(
    const float* w0, const float* w1, const float* w2, const float* w3, const float* w4, const float* norm_weight,
    const float* norm_bias, const float* w_out, u16* weights, u16* bias, u16* back) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, block = blockIdx.x;
    if (block < 20 * KB + 20) {  // of a matrix (0: left, 1: left gate, 2: right, 3: right gate, 4: output gate) 32 h
        int part = block % 20, kb = block / 20, m = part >> 2, h = (part & 3) * 32 + lane;
        const float* w = m == 0 ? w0 : m == 1 ? w1 : m == 2 ? w2 : m == 3 ? w3 : w4;
        int chunk = m == 4 ? 8 + (h >> 6) : (m >> 1) * 4 + (h >> 5), row = m == 4 ? h & 63 : (m & 1) * 32 + (h & 31);
        float factor = m == 0 || m == 2 ? 1.0f : 0.5f;  // sigmoid(v) = 0.5 tanh(0.5 v) + 0.5
        if (kb < KB) {  // by 64 channels
            u16* to = weights + (long)(chunk * KB + kb) * 4096 + row * 64;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int c = warp + 16 * i, q = (c & 15) >> 2, e = c & 3, k = (c & 48) + 2 * q + (e & 1) + (e >> 1) * 8;
                to[(((k >> 3) ^ (row & 7)) << 3) + (k & 7)] = half_of(w[(kb * 64 + c) * H + h] * factor * norm_weight[kb * 64 + c]);
            }
        } else {
            float total = 0;
#pragma unroll
            for (int i = 0; i < C / 16; i++) total += norm_bias[warp + 16 * i] * w[(warp + 16 * i) * H + h];
            __shared__ float sums[16][32];
            sums[warp][lane] = total;
            __syncthreads();
            if (warp == 0) {
                for (int i = 1; i < 16; i++) total += sums[i][lane];
                bias[chunk * 64 + row] = half_of(total * factor);
            }
        }
    } else {  // 32 columns of w_out
        int c = (block - 20 * KB - 20) * 32 + lane, in = c & 15, q = in >> 2, e = in & 3;
        int row = (c & 48) + 2 * q + (e & 1) + (e >> 1) * 8;  // accumulators 2q, 2q+1 of two neighbours are four columns
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int h = warp + 16 * i, k = h & 63;
            back[(long)((c >> 6) * 2 + (h >> 6)) * 4096 + row * 64 + (((k >> 3) ^ (row & 7)) << 3) + (k & 7)] = half_of(w_out[h * C + c]);
        }
    }
}

__device__ __forceinline__ void normalise(const float4 (&v)[C / 16], u32 (&z)[C / 16][4], int first, float epsilon) {
    float total = 0;
#pragma unroll
    for (int s = 0; s < C / 16; s++) total += (v[s].x + v[s].y) + (v[s].z + v[s].w);
    float mean = quad_sum(total) * (1.0f / C), square = 0;
#pragma unroll
    for (int s = 0; s < C / 16; s++) {
        float a = v[s].x - mean, b = v[s].y - mean, c = v[s].z - mean, d = v[s].w - mean;
        square += (a * a + b * b) + (c * c + d * d);
    }
    float steep = rsqrtf(quad_sum(square) * (1.0f / C) + epsilon);
#pragma unroll
    for (int s = 0; s < C / 16; s++) {
        z[s][first] = half2_of((v[s].x - mean) * steep, (v[s].y - mean) * steep);
        z[s][first + 2] = half2_of((v[s].z - mean) * steep, (v[s].w - mean) * steep);
    }
}

__device__ __forceinline__ void opened(const float (&v)[32], const u32* bias, u32 (&out)[16], int half) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int f = 16 * half + 4 * j;
        u32 p = bias[4 * (4 * half + j)];
        out[2 * j] = open2(add2(half2_of(v[f], v[f + 1]), p));
        out[2 * j + 1] = open2(add2(half2_of(v[f + 2], v[f + 3]), p));
    }
}
// 32 h of 64 pairs into shared memory: rows of 128 bytes, swizzled as the tensor map expects
__device__ __forceinline__ void put(const u32 (&v)[16], u32 stage, int warp, int lane) {
    u32 at = stage + ((lane >> 4) * 8 + (lane & 7)) * 128 + (((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) << 4);
#pragma unroll
    for (int j = 0; j < 4; j += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     ::"r"(at + j * 8 * 128), "r"(v[2 * j]), "r"(v[2 * j + 1]), "r"(v[2 * j + 2]), "r"(v[2 * j + 3]) : "memory");
}
struct __align__(64) Map { char bytes[128]; };
// 64 h by 64 pairs from shared memory into planes, while the group goes on
__device__ __forceinline__ void send(const Map* map, u32 stage, int pair, int line) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;"
                 ::"l"(map), "r"(pair), "r"(line), "r"(stage) : "memory");
}
__device__ __forceinline__ void sent() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
#define ASYNC_FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// value and gate of 32 h
__device__ __forceinline__ void pair_up(const float (&d)[32], const u32* bias, u32 s0, u32 s1, u32 stage, int warp, int lane) {
    u32 out[16];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        u32 p = bias[4 * j], r = bias[16 + 4 * j];
        out[2 * j] = mul2(mul2(add2(half2_of(d[4 * j], d[4 * j + 1]), p), s0), open2(add2(half2_of(d[16 + 4 * j], d[17 + 4 * j]), r)));
        out[2 * j + 1] = mul2(mul2(add2(half2_of(d[4 * j + 2], d[4 * j + 3]), p), s1), open2(add2(half2_of(d[18 + 4 * j], d[19 + 4 * j]), r)));
    }
    put(out, stage, warp, lane);
}

#if RESIDENT
#define WORKERS 3
#define HALF 16384              // bytes: 32 rows of x
// 64 pairs by 64 columns of one chunk: its 16 KB of weights stand in shared memory as two blocks of 64 channels
__device__ __forceinline__ void multiply(float (&d)[32], const u32 (&z)[8][4], u32 weights) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; k++) wgmma(d, z[k], describe(weights + (k >> 2) * 8192) + 2 * (k & 3), k > 0);
    wgmma_commit();
}
// Three groups of 128 threads take tiles of 64 pairs in turn; a warp brings x into shared memory ahead of them. While a
// group works on one chunk's results, the matrix units are at its next chunk.
extern "C" __global__ void __launch_bounds__(WORKERS * 128 + 32, 1) project(
    const float* x, const float* mask, const u16* weights, const u16* bias, const __grid_constant__ Map map, int pairs, int batch, float scale, float epsilon) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) u64 full, xfull[2 * WORKERS], xempty[2];
    __shared__ u32 biases[10 * 32];
    u32 base = (smem_of(memory) + 1023) & ~1023u, xs = base + UNITS * 16384;
    int tiles = (int)((long)batch * pairs / 64), wg = threadIdx.x >> 7, t = threadIdx.x & 127;
    int mine = (tiles - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    if (threadIdx.x < 320) biases[threadIdx.x] = ((const u32*)bias)[threadIdx.x];
    if (threadIdx.x == 0) {
        mbar_init(smem_of(&full), 1);
        for (int i = 0; i < 2 * WORKERS; i++) mbar_init(smem_of(&xfull[i]), 1);
        for (int i = 0; i < 2; i++) mbar_init(smem_of(&xempty[i]), 2);
        ASYNC_FENCE;
    }
    __syncthreads();
    if (wg == WORKERS) {
        if (t == 0) {
            for (int i = 0; i < mine; i++) {
                const float* from = x + ((long)i * gridDim.x + blockIdx.x) * 64 * C;
                for (int half = 0; half < 2; half++) {
                    u32 bar = smem_of(&xfull[i % WORKERS * 2 + half]);
                    mbar_wait(smem_of(&xempty[half]), (i & 1) ^ 1);
                    mbar_expect(bar, HALF);
                    bulk_load(xs + half * HALF, from + half * 32 * C, HALF, bar);
                }
                if (i == 0) {
                    mbar_expect(smem_of(&full), UNITS * 16384);
                    for (int u = 0; u < UNITS; u++) bulk_load(base + u * 16384, weights + (long)u * 8192, 16384, smem_of(&full));
                }
            }
        }
        return;
    }
    int warp = t >> 5, lane = t & 31, g = lane >> 2, q = lane & 3, half = warp >> 1;
    u32 stage = xs + 2 * HALF + wg * 8192, from = xs + half * HALF + ((warp & 1) * 16 + g) * 512 + q * 16;
    bool leader = t == 0;
    u32 turn = 0, small = half2_of(scale, scale);
    float on0 = 0, on1 = 0;  // of the tile that comes next: asked for a tile ahead
    const float* masks = mask + warp * 16 + g;
    if (wg < mine) { on0 = masks[((long)wg * gridDim.x + blockIdx.x) * 64]; on1 = masks[((long)wg * gridDim.x + blockIdx.x) * 64 + 8]; }
    for (int i = wg; i < mine; i += WORKERS, turn ^= 1) {
        int tile = i * gridDim.x + blockIdx.x;
        u32 z[C / 16][4], s0 = half2_of(on0, on0), s1 = half2_of(on1, on1);
        if (i + WORKERS < mine) {
            long later = ((long)(i + WORKERS) * gridDim.x + blockIdx.x) * 64;
            on0 = masks[later];
            on1 = masks[later + 8];
        }
        mbar_wait(smem_of(&xfull[wg * 2 + half]), turn);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float4 v[C / 16];
#pragma unroll
            for (int s = 0; s < C / 16; s++)
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[s].x), "=f"(v[s].y), "=f"(v[s].z), "=f"(v[s].w) : "r"(from + r * 4096 + s * 64));
            normalise(v, z, r, epsilon);
        }
        __syncwarp();
        if (lane == 0) mbar_arrive(smem_of(&xempty[half]));
        int b = (int)((long)tile * 64 / pairs);
        int pair = (int)((long)tile * 64 - (long)b * pairs);
        mbar_wait(smem_of(&full), 0);
        float d[32], e[32];
        multiply(d, z, base);
#pragma unroll
        for (int chunk = 0; chunk < 8; chunk += 2) {
            u32 f0 = chunk < 4 ? mul2(s0, small) : s0, f1 = chunk < 4 ? mul2(s1, small) : s1;
            const u32* bv = biases + chunk * 32 + q;
            multiply(e, z, base + (chunk + 1) * 16384);
            wgmma_wait<1>();
            settle(d);
            if (leader) sent();
            bar_sync(1 + wg, 128);
            pair_up(d, bv, f0, f1, stage, warp, lane);
            settle(d);
            multiply(d, z, base + (chunk + 2) * 16384);
            wgmma_wait<1>();
            settle(e);
            pair_up(e, bv + 32, f0, f1, stage + 4096, warp, lane);
            settle(e);
            ASYNC_FENCE;
            bar_sync(1 + wg, 128);
            if (leader) send(&map, stage, pair, ((chunk >> 2) * batch + b) * H + ((chunk >> 1) & 1) * 64);
        }
        multiply(e, z, base + 9 * 16384);
        wgmma_wait<1>();
        settle(d);
        u32 out[16];
        if (leader) sent();
        bar_sync(1 + wg, 128);
        opened(d, biases + 256 + q, out, 0);
        put(out, stage, warp, lane);
        opened(d, biases + 256 + q, out, 1);
        put(out, stage + 4096, warp, lane);
        ASYNC_FENCE;
        bar_sync(1 + wg, 128);
        if (leader) { send(&map, stage, pair, (2 * batch + b) * H); sent(); }
        wgmma_wait<0>();
        settle(e);
        bar_sync(1 + wg, 128);
        opened(e, biases + 288 + q, out, 0);
        put(out, stage, warp, lane);
        opened(e, biases + 288 + q, out, 1);
        put(out, stage + 4096, warp, lane);
        ASYNC_FENCE;
        bar_sync(1 + wg, 128);
        if (leader) send(&map, stage, pair, (2 * batch + b) * H + 64);
    }
    if (leader) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#else
#if SHARED
__device__ __forceinline__ void arrive_at(u32 at, u32 rank) {
    asm volatile("{.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [r];\n}" ::"r"(at), "r"(rank) : "memory");
}
__device__ __forceinline__ void bulk_share(u32 to, const void* from, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(bar), "h"((u16)3) : "memory");
}
#define CLUSTER_SYNC asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory")
#endif
#define DEEP 12                 // units of 8 KB of weights in shared memory
#define AHEAD 4                 // chunks that group 0 begins its tiles before group 1
#define XROW (C * 4 + 64)       // bytes of a row of x in shared memory: eight rows lie in different banks

struct Stream {                 // of units, in the order of their use
    u32 base, full, empty, phase;
    int slot;
    __device__ __forceinline__ void step() { if (++slot == DEEP) { slot = 0; phase ^= 1; } }
    // the units of a chunk that began at `first` are free again: lanes share the work
    __device__ __forceinline__ void release(int first, int lane) {
        int unit = SHARED ? lane >> 1 : lane;
        if (unit >= KB) return;
        int at = first + unit;
        if (at >= DEEP) at -= DEEP;
#if SHARED
        arrive_at(empty + at * 8, lane & 1);
#else
        mbar_arrive(empty + at * 8);
#endif
    }
    __device__ __forceinline__ void multiply(float (&d)[32], const u32 (&z)[C / 16][4]) {
#pragma unroll
        for (int kb = 0; kb < KB; kb++) {
            mbar_wait(full + slot * 8, phase);
            u64 at = describe(base + slot * 8192);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < 4; s++) wgmma(d, z[kb * 4 + s], at + 2 * s, kb + s > 0);
            step();
        }
        wgmma_commit();
    }
};

// Two groups normalise and multiply, 64 pairs each, half a tile apart; one thread loads the weights for both.
extern "C" __global__ void
#if SHARED
__cluster_dims__(2, 1, 1)
#endif
__launch_bounds__(384, 1) project(
    const float* x, const float* mask, const u16* weights, const u16* bias, const __grid_constant__ Map map, int pairs, int batch, float scale, float epsilon) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) u64 full[DEEP], empty[DEEP], xfull[2], xempty;
    __shared__ u32 biases[10 * 32];
    u32 base = (smem_of(memory) + 1023) & ~1023u, rank = 0, xs = base + DEEP * 8192 + 2 * 8192;
    int tiles = (int)((long)batch * pairs / 128), wg = threadIdx.x >> 7, t = threadIdx.x & 127;
    int rounds = (tiles + gridDim.x - 1) / gridDim.x;
    if (SHARED) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x < 320) biases[threadIdx.x] = ((const u32*)bias)[threadIdx.x];
    if (threadIdx.x == 0) {
        for (int i = 0; i < DEEP; i++) { mbar_init(smem_of(&full[i]), 1); mbar_init(smem_of(&empty[i]), SHARED ? 16 : 8); }
        for (int i = 0; i < 2; i++) mbar_init(smem_of(&xfull[i]), 1);
        mbar_init(smem_of(&xempty), 4);
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
#if SHARED
    CLUSTER_SYNC;
#endif
    int warp = t >> 5, lane = t & 31;
    Stream stream = {base, smem_of(full), smem_of(empty), 0, 0};
    if (wg == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (t == 0) {
            for (int i = 0, u = 0; i < (rounds * 10 + AHEAD) * KB; i++) {
                mbar_wait(stream.empty + stream.slot * 8, stream.phase ^ 1);
                u32 bar = stream.full + stream.slot * 8, to = base + stream.slot * 8192;
                mbar_expect(bar, 8192);
#if SHARED
                bulk_share(to + rank * 4096, weights + (long)u * 4096 + rank * 2048, 4096, bar);
#else
                bulk_load(to, weights + (long)u * 4096, 8192, bar);
#endif
                stream.step();
                if (++u == 10 * KB) u = 0;
            }
        } else if (t == 32) {  // rows of x, for the two groups in turn
            for (int i = 0; i < 2 * rounds; i++) {
                int tile = (i >> 1) * gridDim.x + blockIdx.x;
                if (tile >= tiles) tile = tiles - 1;
                const float* from = x + ((long)tile * 128 + (i & 1) * 64) * C;
                u32 bar = smem_of(&xfull[i & 1]);
                mbar_wait(smem_of(&xempty), (i & 1) ^ 1);
                mbar_expect(bar, 64 * C * 4);
                for (int row = 0; row < 64; row++) bulk_load(xs + row * XROW, from + row * C, C * 4, bar);
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        int g = lane >> 2, q = lane & 3;
        u32 stage = base + DEEP * 8192 + wg * 8192, small = half2_of(scale, scale);
        bool leader = t == 0;
        if (wg == 1)
            for (int i = 0; i < AHEAD; i++) {
                int first = stream.slot;
                for (int kb = 0; kb < KB; kb++) { mbar_wait(stream.full + stream.slot * 8, stream.phase); stream.step(); }
                stream.release(first, lane);
            }
        for (int r = 0; r < rounds; r++) {
            int tile = r * gridDim.x + blockIdx.x;
            bool valid = tile < tiles;
            if (!valid) tile = tiles - 1;
            long row = (long)tile * 128 + wg * 64 + warp * 16 + g;
            u32 z[C / 16][4];
            float on0 = mask[row], on1 = mask[row + 8];
            mbar_wait(smem_of(&xfull[wg]), r & 1);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                float4 v[C / 16];
                u32 from = xs + (warp * 16 + g + 8 * k) * XROW + q * 16;
#pragma unroll
                for (int s = 0; s < C / 16; s++)
                    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[s].x), "=f"(v[s].y), "=f"(v[s].z), "=f"(v[s].w) : "r"(from + s * 64));
                normalise(v, z, k, epsilon);
#pragma unroll
                for (int s = 0; s < C / 16; s++) asm volatile("" : "+r"(z[s][k]), "+r"(z[s][k + 2])::"memory");
                __syncwarp();  // the second half's loads stay behind the first half's arithmetic: registers
            }
            if (lane == 0) mbar_arrive(smem_of(&xempty));
            u32 s0 = half2_of(on0, on0), s1 = half2_of(on1, on1);
            int b = (int)((long)tile * 128 / pairs);
            int pair = (int)((long)tile * 128 - (long)b * pairs) + wg * 64;
            float d[32], e[32];
            int before = stream.slot;
            stream.multiply(d, z);
#pragma unroll
            for (int i = 0; i < 5; i++) {
                int two = i + wg * (AHEAD / 2);     // of 64 h: 0, 1 left; 2, 3 right; 4 the output gates
                if (two >= 5) two -= 5;
                u32 f0 = two < 2 ? mul2(s0, small) : s0, f1 = two < 2 ? mul2(s1, small) : s1;
                const u32* bv = biases + two * 64 + q;
                int here = stream.slot;
                stream.multiply(e, z);
                wgmma_wait<1>();
                settle(d);
                stream.release(before, lane);
                if (leader) sent();
                bar_sync(1 + wg, 128);
                u32 out[16];
                if (two < 4) pair_up(d, bv, f0, f1, stage, warp, lane);
                else {
                    opened(d, bv, out, 0);
                    put(out, stage, warp, lane);
                    opened(d, bv, out, 1);
                    put(out, stage + 4096, warp, lane);
                    ASYNC_FENCE;
                    bar_sync(1 + wg, 128);
                    if (leader) { if (valid) send(&map, stage, pair, (2 * batch + b) * H); sent(); }
                    bar_sync(1 + wg, 128);
                }
                settle(d);
                before = stream.slot;
                if (i < 4) { stream.multiply(d, z); wgmma_wait<1>(); } else wgmma_wait<0>();
                settle(e);
                stream.release(here, lane);
                if (two < 4) pair_up(e, bv + 32, f0, f1, stage + 4096, warp, lane);
                else {
                    opened(e, bv + 32, out, 0);
                    put(out, stage, warp, lane);
                    opened(e, bv + 32, out, 1);
                    put(out, stage + 4096, warp, lane);
                }
                settle(e);
                ASYNC_FENCE;
                bar_sync(1 + wg, 128);
                if (leader && valid) send(&map, stage, pair, two < 4 ? ((two >> 1) * batch + b) * H + (two & 1) * 64 : (2 * batch + b) * H + 64);
            }
        }
        if (leader) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
#if SHARED
    __syncwarp();
    CLUSTER_SYNC;
#endif
}
#endif

#ifndef GROUPS
#define GROUPS (C == 128 ? 4 : 3)  // of 128 threads
#define BUFFERS 1                  // of each group: 128 h by 64 pairs, of the product and of the gate
#endif
#define TILE 16384

__device__ __forceinline__ void fetch(u32 to, const Map* out, const Map* planes, int pair, int line, int gates, u32 bar) {
    mbar_expect(bar, 2 * TILE);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(out), "r"(pair), "r"(line), "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to + TILE), "l"(planes), "r"(pair), "r"(gates + line), "r"(bar) : "memory");
}
__device__ __forceinline__ void fragment(u32 (&a)[4], u32 tile, int s, int warp, int lane) {
    u32 at = tile + (16 * s + (lane >> 4) * 8 + (lane & 7)) * 128 + (((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) << 4);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at) : "memory");
}

extern "C" __global__ void __launch_bounds__(GROUPS * 128, 1) finish(
    const __grid_constant__ Map out, const __grid_constant__ Map planes, const float* norm_weight, const float* norm_bias, const u16* back, float* y, int pairs, int batch, float epsilon) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ float2 affine[2][64];
    __shared__ __align__(8) u64 full[GROUPS * BUFFERS];
    u32 base = (smem_of(memory) + 1023) & ~1023u;
    int wg = threadIdx.x >> 7, t = threadIdx.x & 127, warp = t >> 5, lane = t & 31, g = lane >> 2, q = lane & 3;
    u32 mine = base + C * H * 2 + wg * BUFFERS * 2 * TILE, bars = smem_of(&full[wg * BUFFERS]);
    int tiles = (int)((long)batch * pairs / 64), step = gridDim.x * GROUPS, tile = blockIdx.x * GROUPS + wg;
    if (threadIdx.x < 64) { affine[0][threadIdx.x] = ((const float2*)norm_weight)[threadIdx.x]; affine[1][threadIdx.x] = ((const float2*)norm_bias)[threadIdx.x]; }
    if (threadIdx.x == 0) {
        for (int i = 0; i < GROUPS * BUFFERS; i++) mbar_init(smem_of(&full[i]), 1);
        ASYNC_FENCE;
    }
    for (int i = threadIdx.x; i < C * H / 8; i += GROUPS * 128)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + i * 16), "l"(back + i * 8) : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    ASYNC_FENCE;
    __syncthreads();
    if (t == 0)
        for (int i = 0; i < BUFFERS; i++) {
            int at = tile + i * step, b = (int)((long)at * 64 / pairs);
            if (at < tiles) fetch(mine + i * 2 * TILE, &out, &planes, (int)((long)at * 64 - (long)b * pairs), b * H, 2 * batch * H, bars + i * 8);
        }
    int buffer = 0;
    u32 phase = 0;
    for (; tile < tiles; tile += step) {
        u32 here = mine + buffer * 2 * TILE;
        mbar_wait(bars + buffer * 8, phase);
        float v[8][8];
        float t0 = 0, t1 = 0;
#pragma unroll
        for (int s = 0; s < 8; s++) {
            u32 a[4];
            fragment(a, here, s, warp, lane);
#pragma unroll
            for (int i = 0; i < 4; i++) { float2 p = floats_of(a[i]); v[s][2 * i] = p.x; v[s][2 * i + 1] = p.y; }
            t0 += (v[s][0] + v[s][1]) + (v[s][4] + v[s][5]);
            t1 += (v[s][2] + v[s][3]) + (v[s][6] + v[s][7]);
        }
        float m0 = quad_sum(t0) * (1.0f / H), m1 = quad_sum(t1) * (1.0f / H), q0 = 0, q1 = 0;
#pragma unroll
        for (int s = 0; s < 8; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float* p = &v[s][2 * i];
                p[0] -= i & 1 ? m1 : m0;
                p[1] -= i & 1 ? m1 : m0;
                if (i & 1) q1 += p[0] * p[0] + p[1] * p[1]; else q0 += p[0] * p[0] + p[1] * p[1];
            }
        float r0 = rsqrtf(quad_sum(q0) * (1.0f / H) + epsilon), r1 = rsqrtf(quad_sum(q1) * (1.0f / H) + epsilon);
        u32 a[8][4];
#pragma unroll
        for (int s = 0; s < 8; s++) {
            u32 o[4];
            fragment(o, here + TILE, s, warp, lane);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float2 w = affine[0][8 * s + (i >> 1) * 4 + q], c = affine[1][8 * s + (i >> 1) * 4 + q], p = floats_of(o[i]);
                float r = i & 1 ? r1 : r0;
                a[s][i] = half2_of((v[s][2 * i] * r * w.x + c.x) * p.x, (v[s][2 * i + 1] * r * w.y + c.y) * p.y);
            }
        }
        bar_sync(1 + wg, 128);
        int next = tile + BUFFERS * step;
        if (t == 0 && next < tiles) {
            int b = (int)((long)next * 64 / pairs);
            fetch(here, &out, &planes, (int)((long)next * 64 - (long)b * pairs), b * H, 2 * batch * H, bars + buffer * 8);
        }
        if (++buffer == BUFFERS) { buffer = 0; phase ^= 1; }
        float* to = y + ((long)tile * 64 + warp * 16 + g) * C + 4 * q;
#pragma unroll 1
        for (int n = 0; n < C / 64; n++) {
            float d[32];
            u64 at = describe(base + n * 16384);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < 8; s++) wgmma(d, a[s], at + (s >> 2) * 512 + 2 * (s & 3), s > 0);
            wgmma_commit();
            wgmma_wait<0>();
            settle(d);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                *(float4*)(to + n * 64 + 16 * j) = make_float4(d[8 * j], d[8 * j + 1], d[8 * j + 4], d[8 * j + 5]);
                *(float4*)(to + n * 64 + 16 * j + 8 * C) = make_float4(d[8 * j + 2], d[8 * j + 3], d[8 * j + 6], d[8 * j + 7]);
            }
        }
    }
}
"""
SECOND = r"""
// Stages 1 and 3 of triangle multiplication for sm_90a. C is defined by the caller: 128, 256 or 384.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
#define H 128
#define KB (C / 64)           // blocks of 64 channels
#define UNITS (5 * KB)        // weight tiles of 16 KB: two slots of 64 h by 64 channels
#define RESIDENT (C == 128)
#define RING (RESIDENT ? UNITS : 11)
#define STAGE_ROW 144         // bytes: 64 pairs and padding
#define STAGE (64 * STAGE_ROW)

__device__ __forceinline__ u32 smem_of(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ u32 half2_of(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ __forceinline__ float2 floats_of(u32 v) {
    float2 r;
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(r.x), "=f"(r.y) : "r"(v));
    return r;
}
__device__ __forceinline__ u16 half_of(float v) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ float sigmoid(float v) {
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.5f * v));
    return fmaf(0.5f, t, 0.5f);
}
__device__ __forceinline__ float quad_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}
__device__ __forceinline__ void bar_sync(int id, int count) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }
__device__ __forceinline__ void mbar_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count)); }
__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity) {
    asm volatile(
        "{.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:}"
        ::"r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(u32 to, const void* from, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
__device__ __forceinline__ u64 describe(u32 at) {  // K-major, 128-byte swizzle, 8 rows are 1024 bytes
    return (u64)((at & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
__device__ __forceinline__ void wgmma(float (&d)[32], const u32 (&a)[4], u64 b, int add) {
    asm volatile(
        "{.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
struct __align__(64) Map { char bytes[128]; };
#define ASYNC_FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
template <int N> __device__ __forceinline__ void settle(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}
__device__ __forceinline__ float4 load_once(const float* p) {
    float4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    return v;
}

// weights: units of 16 KB as shared memory wants them; bias: 5 x 128; back: w_out in tiles of 64 columns by 64 h.
// Within 16 channels the fragments of an operand in registers take columns 4q..4q+3 as positions 2q, 2q+1, 2q+8, 2q+9.
extern "C" __global__ void __launch_bounds__(512) prepare(
    const float* w0, const float* w1, const float* w2, const float* w3, const float* w4, const float* norm_weight,
    const float* norm_bias, const float* w_out, u16* weights, float* bias, u16* back) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, block = blockIdx.x;
    if (block < 20 * KB + 20) {  // of a matrix (0: left, 1: left gate, 2: right, 3: right gate, 4: output gate) 32 h
        int part = block % 20, kb = block / 20, m = part >> 2, h = (part & 3) * 32 + lane;
        const float* w = m == 0 ? w0 : m == 1 ? w1 : m == 2 ? w2 : m == 3 ? w3 : w4;
        int chunk = m == 4 ? 4 : (m >> 1) * 2 + (h >> 6), slot = m == 4 ? h >> 6 : m & 1, row = h & 63;
        if (kb < KB) {  // by 64 channels
            u16* to = weights + (long)(chunk * KB + kb) * 8192 + slot * 4096 + row * 64;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int c = warp + 16 * i, q = (c & 15) >> 2, e = c & 3, k = (c & 48) + 2 * q + (e & 1) + (e >> 1) * 8;
                to[(((k >> 3) ^ (row & 7)) << 3) + (k & 7)] = half_of(w[(kb * 64 + c) * H + h] * norm_weight[kb * 64 + c]);
            }
        } else {
            float total = 0;
#pragma unroll
            for (int i = 0; i < C / 16; i++) total += norm_bias[warp + 16 * i] * w[(warp + 16 * i) * H + h];
            __shared__ float sums[16][32];
            sums[warp][lane] = total;
            __syncthreads();
            if (warp == 0) {
                for (int i = 1; i < 16; i++) total += sums[i][lane];
                bias[chunk * 128 + slot * 64 + row] = total;
            }
        }
    } else {  // 32 columns of w_out
        int c = (block - 20 * KB - 20) * 32 + lane, in = c & 15, q = in >> 2, e = in & 3;
        int row = (c & 48) + 2 * q + (e & 1) + (e >> 1) * 8;  // accumulators 2q, 2q+1 of two neighbours are four columns
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int h = warp + 16 * i, k = h & 63;
            back[(long)((c >> 6) * 2 + (h >> 6)) * 4096 + row * 64 + (((k >> 3) ^ (row & 7)) << 3) + (k & 7)] = half_of(w_out[h * C + c]);
        }
    }
}

struct Rows { float4 a[C / 16], b[C / 16]; };  // of rows g and g + 8: columns 16s + 4q ..

__device__ __forceinline__ void load_rows(Rows& r, const float* x, long row, int q) {
    const float* p = x + row * C + 4 * q;
#pragma unroll
    for (int s = 0; s < C / 16; s++) { r.a[s] = load_once(p + 16 * s); r.b[s] = load_once(p + 8 * C + 16 * s); }
}
__device__ __forceinline__ void normalise(const float4 (&v)[C / 16], u32 (&z)[C / 16][4], int first, float epsilon) {
    float total = 0;
#pragma unroll
    for (int s = 0; s < C / 16; s++) total += (v[s].x + v[s].y) + (v[s].z + v[s].w);
    float mean = quad_sum(total) * (1.0f / C), square = 0;
#pragma unroll
    for (int s = 0; s < C / 16; s++) {
        float a = v[s].x - mean, b = v[s].y - mean, c = v[s].z - mean, d = v[s].w - mean;
        square += (a * a + b * b) + (c * c + d * d);
    }
    float steep = rsqrtf(quad_sum(square) * (1.0f / C) + epsilon);
#pragma unroll
    for (int s = 0; s < C / 16; s++) {
        z[s][first] = half2_of((v[s].x - mean) * steep, (v[s].y - mean) * steep);
        z[s][first + 2] = half2_of((v[s].z - mean) * steep, (v[s].w - mean) * steep);
    }
}

// 64 h by 64 pairs out of accumulators, through shared memory, into planes
__device__ __forceinline__ void put(const u32 (&v)[32], u32 stage, u16* to, long pairs, int wg, int warp, int lane) {
    u32 at = stage + ((lane >> 4) * 8 + (lane & 7)) * STAGE_ROW + (warp * 16 + ((lane >> 3) & 1) * 8) * 2;
#pragma unroll
    for (int j = 0; j < 8; j += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     ::"r"(at + j * 8 * STAGE_ROW), "r"(v[2 * j]), "r"(v[2 * j + 1]), "r"(v[2 * j + 2]), "r"(v[2 * j + 3]) : "memory");
    bar_sync(1 + wg, 128);
    int t = warp * 32 + lane;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int h = (t >> 3) + 16 * i, s = t & 7;
        u32 a, b, c, d;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(stage + h * STAGE_ROW + s * 16));
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to + h * pairs + s * 8), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) project(
    const float* x, const float* mask, const u16* weights, const float* bias, u16* planes, int pairs, int batch, float scale, float epsilon) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) u64 full[RING], empty[RING];
    __shared__ float2 biases[5 * 64];
    u32 base = (smem_of(memory) + 1023) & ~1023u, staging = base + RING * 16384;
    int tiles = (int)((long)batch * pairs / 128), wg = threadIdx.x >> 7;
    if (threadIdx.x < 320) biases[threadIdx.x] = ((const float2*)bias)[threadIdx.x];
    if (threadIdx.x == 0) {
        for (int i = 0; i < RING; i++) { mbar_init(smem_of(&full[i]), 1); mbar_init(smem_of(&empty[i]), 8); }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (wg == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x != 256) return;
        int slot = 0;
        u32 phase = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            for (int u = 0; u < UNITS; u++) {
                mbar_wait(smem_of(&empty[slot]), phase ^ 1);
                mbar_expect(smem_of(&full[slot]), 16384);
                bulk_load(base + slot * 16384, weights + (long)u * 8192, 16384, smem_of(&full[slot]));
                if (++slot == RING) { slot = 0; phase ^= 1; }
            }
            if (RESIDENT) break;
            long next = tile + gridDim.x;
            if (next < tiles)
                for (int i = 0; i < 8; i++)
                    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x + next * 128 * C + i * 16 * C), "r"(16 * C * 4));
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    int warp = (threadIdx.x >> 5) & 3, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    int slot = 0, flip = 0;
    u32 phase = 0;
    u32 stage = staging + wg * 2 * STAGE;
    int in = wg * 64 + warp * 16 + g;
    Rows rows;
    if (RESIDENT && (int)blockIdx.x < tiles) load_rows(rows, x, (long)blockIdx.x * 128 + in, q);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        long row = (long)tile * 128 + in;
        if (!RESIDENT) load_rows(rows, x, row, q);
        float on0 = mask[row], on1 = mask[row + 8];
        u32 z[C / 16][4];
        normalise(rows.a, z, 0, epsilon);
        normalise(rows.b, z, 1, epsilon);
        if (RESIDENT && tile + (int)gridDim.x < tiles) load_rows(rows, x, row + (long)gridDim.x * 128, q);
        int b = (int)((long)tile * 128 / pairs);
        long pair = (long)tile * 128 - (long)b * pairs + wg * 64;
        if (RESIDENT) slot = 0;
#pragma unroll 1
        for (int chunk = 0; chunk < 5; chunk++) {
            float v[32], w[32];
            int first = slot;
            wgmma_fence();
#pragma unroll
            for (int kb = 0; kb < KB; kb++) {
                mbar_wait(smem_of(&full[slot]), phase);
                u64 at = describe(base + slot * 16384);
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    wgmma(v, z[kb * 4 + s], at + 2 * s, kb + s > 0);
                    wgmma(w, z[kb * 4 + s], at + 512 + 2 * s, kb + s > 0);
                }
                if (++slot == RING) { slot = 0; phase ^= !RESIDENT; }
            }
            wgmma_commit();
            wgmma_wait<0>();
            if (!RESIDENT && lane == 0)
                for (int kb = 0; kb < KB; kb++) { mbar_arrive(smem_of(&empty[first])); if (++first == RING) first = 0; }
            const float2* bv = biases + chunk * 64 + q;
            u32 out[32];
            if (chunk < 4) {
                float s0 = chunk < 2 ? on0 * scale : on0, s1 = chunk < 2 ? on1 * scale : on1;
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    float2 p = bv[4 * j], r = bv[32 + 4 * j];
                    out[2 * j] = half2_of((v[4 * j] + p.x) * s0 * sigmoid(w[4 * j] + r.x), (v[4 * j + 1] + p.y) * s0 * sigmoid(w[4 * j + 1] + r.y));
                    out[2 * j + 1] = half2_of((v[4 * j + 2] + p.x) * s1 * sigmoid(w[4 * j + 2] + r.x), (v[4 * j + 3] + p.y) * s1 * sigmoid(w[4 * j + 3] + r.y));
                }
                u16* to = planes + ((long)((chunk >> 1) * batch + b) * H + (chunk & 1) * 64) * pairs + pair;
                put(out, stage + flip * STAGE, to, pairs, wg, warp, lane);
                flip ^= 1;
            } else {
                u16* to = planes + ((long)(2 * batch + b) * H) * pairs + pair;
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    float2 p = bv[4 * j];
                    out[2 * j] = half2_of(sigmoid(v[4 * j] + p.x), sigmoid(v[4 * j + 1] + p.y));
                    out[2 * j + 1] = half2_of(sigmoid(v[4 * j + 2] + p.x), sigmoid(v[4 * j + 3] + p.y));
                }
                put(out, stage + flip * STAGE, to, pairs, wg, warp, lane);
                flip ^= 1;
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    float2 p = bv[32 + 4 * j];
                    out[2 * j] = half2_of(sigmoid(w[4 * j] + p.x), sigmoid(w[4 * j + 1] + p.y));
                    out[2 * j + 1] = half2_of(sigmoid(w[4 * j + 2] + p.x), sigmoid(w[4 * j + 3] + p.y));
                }
                put(out, stage + flip * STAGE, to + 64l * pairs, pairs, wg, warp, lane);
                flip ^= 1;
            }
        }
    }
}

#ifndef GROUPS
#define GROUPS (C == 128 ? 4 : 3)  // of 128 threads
#define BUFFERS 1                  // of each group: 128 h by 64 pairs, of the product and of the gate
#endif
#define TILE 16384

__device__ __forceinline__ void fetch(u32 to, const Map* out, const Map* planes, int pair, int line, int gates, u32 bar) {
    mbar_expect(bar, 2 * TILE);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(out), "r"(pair), "r"(line), "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to + TILE), "l"(planes), "r"(pair), "r"(gates + line), "r"(bar) : "memory");
}
__device__ __forceinline__ void fragment(u32 (&a)[4], u32 tile, int s, int warp, int lane) {
    u32 at = tile + (16 * s + (lane >> 4) * 8 + (lane & 7)) * 128 + (((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) << 4);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at) : "memory");
}

extern "C" __global__ void __launch_bounds__(GROUPS * 128, 1) finish(
    const __grid_constant__ Map out, const __grid_constant__ Map planes, const float* norm_weight, const float* norm_bias, const u16* back, float* y, int pairs, int batch, float epsilon) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ float2 affine[2][64];
    __shared__ __align__(8) u64 full[GROUPS * BUFFERS];
    u32 base = (smem_of(memory) + 1023) & ~1023u;
    int wg = threadIdx.x >> 7, t = threadIdx.x & 127, warp = t >> 5, lane = t & 31, g = lane >> 2, q = lane & 3;
    u32 mine = base + C * H * 2 + wg * BUFFERS * 2 * TILE, bars = smem_of(&full[wg * BUFFERS]);
    int tiles = (int)((long)batch * pairs / 64), step = gridDim.x * GROUPS, tile = blockIdx.x * GROUPS + wg;
    if (threadIdx.x < 64) { affine[0][threadIdx.x] = ((const float2*)norm_weight)[threadIdx.x]; affine[1][threadIdx.x] = ((const float2*)norm_bias)[threadIdx.x]; }
    if (threadIdx.x == 0) {
        for (int i = 0; i < GROUPS * BUFFERS; i++) mbar_init(smem_of(&full[i]), 1);
        ASYNC_FENCE;
    }
    for (int i = threadIdx.x; i < C * H / 8; i += GROUPS * 128)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + i * 16), "l"(back + i * 8) : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    ASYNC_FENCE;
    __syncthreads();
    if (t == 0)
        for (int i = 0; i < BUFFERS; i++) {
            int at = tile + i * step, b = (int)((long)at * 64 / pairs);
            if (at < tiles) fetch(mine + i * 2 * TILE, &out, &planes, (int)((long)at * 64 - (long)b * pairs), b * H, 2 * batch * H, bars + i * 8);
        }
    int buffer = 0;
    u32 phase = 0;
    for (; tile < tiles; tile += step) {
        u32 here = mine + buffer * 2 * TILE;
        mbar_wait(bars + buffer * 8, phase);
        float v[8][8];
        float t0 = 0, t1 = 0;
#pragma unroll
        for (int s = 0; s < 8; s++) {
            u32 a[4];
            fragment(a, here, s, warp, lane);
#pragma unroll
            for (int i = 0; i < 4; i++) { float2 p = floats_of(a[i]); v[s][2 * i] = p.x; v[s][2 * i + 1] = p.y; }
            t0 += (v[s][0] + v[s][1]) + (v[s][4] + v[s][5]);
            t1 += (v[s][2] + v[s][3]) + (v[s][6] + v[s][7]);
        }
        float m0 = quad_sum(t0) * (1.0f / H), m1 = quad_sum(t1) * (1.0f / H), q0 = 0, q1 = 0;
#pragma unroll
        for (int s = 0; s < 8; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float* p = &v[s][2 * i];
                p[0] -= i & 1 ? m1 : m0;
                p[1] -= i & 1 ? m1 : m0;
                if (i & 1) q1 += p[0] * p[0] + p[1] * p[1]; else q0 += p[0] * p[0] + p[1] * p[1];
            }
        float r0 = rsqrtf(quad_sum(q0) * (1.0f / H) + epsilon), r1 = rsqrtf(quad_sum(q1) * (1.0f / H) + epsilon);
        u32 a[8][4];
#pragma unroll
        for (int s = 0; s < 8; s++) {
            u32 o[4];
            fragment(o, here + TILE, s, warp, lane);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float2 w = affine[0][8 * s + (i >> 1) * 4 + q], c = affine[1][8 * s + (i >> 1) * 4 + q], p = floats_of(o[i]);
                float r = i & 1 ? r1 : r0;
                a[s][i] = half2_of((v[s][2 * i] * r * w.x + c.x) * p.x, (v[s][2 * i + 1] * r * w.y + c.y) * p.y);
            }
        }
        bar_sync(1 + wg, 128);
        int next = tile + BUFFERS * step;
        if (t == 0 && next < tiles) {
            int b = (int)((long)next * 64 / pairs);
            fetch(here, &out, &planes, (int)((long)next * 64 - (long)b * pairs), b * H, 2 * batch * H, bars + buffer * 8);
        }
        if (++buffer == BUFFERS) { buffer = 0; phase ^= 1; }
        float* to = y + ((long)tile * 64 + warp * 16 + g) * C + 4 * q;
#pragma unroll 1
        for (int n = 0; n < C / 64; n++) {
            float d[32];
            u64 at = describe(base + n * 16384);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < 8; s++) wgmma(d, a[s], at + (s >> 2) * 512 + 2 * (s & 3), s > 0);
            wgmma_commit();
            wgmma_wait<0>();
            settle(d);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                *(float4*)(to + n * 64 + 16 * j) = make_float4(d[8 * j], d[8 * j + 1], d[8 * j + 4], d[8 * j + 5]);
                *(float4*)(to + n * 64 + 16 * j + 8 * C) = make_float4(d[8 * j + 2], d[8 * j + 3], d[8 * j + 6], d[8 * j + 7]);
            }
        }
    }
}
"""
# c: source, and of each kernel threads, tiles of 64 pairs per block and round, bytes of shared memory
CONFIG = {
    128: (FIRST, {"prepare": (512, 0, 0), "project": (416, 1, 222208), "finish": (512, 4, 164864)}),
    256: (SECOND, {"prepare": (512, 0, 0), "project": (384, 2, 218112), "finish": (384, 3, 164864)}),
    384: (SECOND, {"prepare": (512, 0, 0), "project": (384, 2, 218112), "finish": (384, 3, 197632)}),
}


def good(answer):
    error, *values = answer
    if int(error) != 0:
        raise RuntimeError(str(error))
    return values[0] if len(values) == 1 else values


class Kernels:
    """Compiled code for one c: nothing of any call is kept in it."""

    def __init__(self, c):
        source, self.how = CONFIG[c]
        program = good(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []))
        options = [b"--gpu-architecture=sm_90a", b"--std=c++17", f"-DC={c}".encode()]
        (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(error) != 0:
            log = b" " * good(nvrtc.nvrtcGetProgramLogSize(program))
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(log.decode())
        cubin = b" " * good(nvrtc.nvrtcGetCUBINSize(program))
        good(nvrtc.nvrtcGetCUBIN(program, cubin))
        self.module = good(driver.cuModuleLoadData(cubin))
        self.functions = {}
        for name in self.how:
            function = good(driver.cuModuleGetFunction(self.module, name.encode()))
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            good(driver.cuFuncSetAttribute(function, most, self.how[name][2]))
            self.functions[name] = function

    def launch(self, name, work, *arguments):
        """`work`: tiles of 64 pairs, or blocks where the configuration names no tiles per block."""
        threads, each, size = self.how[name]
        units = torch.cuda.get_device_properties(0).multi_processor_count
        blocks = min(units, -(-work // each)) if each else work
        held = []
        for a in arguments:
            if isinstance(a, torch.Tensor):
                held.append(ctypes.c_void_p(a.data_ptr()))
            elif isinstance(a, driver.CUtensorMap):
                held.append(a)
            elif isinstance(a, float):
                held.append(ctypes.c_float(a))
            else:
                held.append(ctypes.c_int(a))
        pointers = (ctypes.c_void_p * len(held))(*[a.getPtr() if isinstance(a, driver.CUtensorMap) else ctypes.addressof(a) for a in held])
        stream = torch.cuda.current_stream().cuda_stream
        good(driver.cuLaunchKernel(self.functions[name], blocks, 1, 1, threads, 1, 1, size, stream,
                                   ctypes.addressof(pointers), 0))


KERNELS = {}


def map_of(planes, pairs, lines_of_box=64):
    """Lines of fp16 along pairs, in boxes of some lines by 64 pairs."""
    lines = planes.numel() // pairs
    return good(driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, planes.data_ptr(),
        [driver.cuuint64_t(pairs), driver.cuuint64_t(lines)], [driver.cuuint64_t(pairs * 2)],
        [driver.cuuint32_t(64), driver.cuuint32_t(lines_of_box)], [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    ))


def plain(x, mask, norm_weight, norm_bias, w_left, w_right, w_left_gate, w_right_gate, w_out_gate,
          out_norm_weight, out_norm_bias, w_out):
    z = functional.layer_norm(x, norm_weight.shape, norm_weight, norm_bias, EPSILON)
    on = mask.unsqueeze(-1)
    left = (z @ w_left) * on * torch.sigmoid(z @ w_left_gate)
    right = (z @ w_right) * on * torch.sigmoid(z @ w_right_gate)
    out = torch.einsum("bikh,bjkh->bijh", left, right)
    out = functional.layer_norm(out, out_norm_weight.shape, out_norm_weight, out_norm_bias, EPSILON)
    return (out * torch.sigmoid(z @ w_out_gate)) @ w_out


def run(
    x, mask, norm_weight, norm_bias, w_left, w_right, w_left_gate, w_right_gate, w_out_gate,
    out_norm_weight, out_norm_bias, w_out,
):  # fmt: skip
    batch, n, _, c = x.shape
    if c not in CONFIG:
        return plain(x, mask, norm_weight, norm_bias, w_left, w_right, w_left_gate, w_right_gate, w_out_gate,
                     out_norm_weight, out_norm_bias, w_out)
    pairs, h = n * n, HIDDEN
    half = {"dtype": torch.float16, "device": x.device}
    weights, w_back = torch.empty((5, c, h), **half), torch.empty((h, c), **half)
    bias = torch.empty((5, h), dtype=torch.float32, device=x.device)
    planes = torch.empty((3, batch * h, n, n), **half)
    y = torch.empty_like(x)
    if c not in KERNELS:
        KERNELS[c] = Kernels(c)
    own, tiles = KERNELS[c], batch * pairs // 64
    own.launch("prepare", 20 * (c // 64) + 20 + c // 32, w_left, w_left_gate, w_right, w_right_gate, w_out_gate, norm_weight, norm_bias,
               w_out, weights, bias, w_back)
    own.launch("project", tiles, x, mask, weights, bias, map_of(planes, pairs) if c == 128 else planes, pairs, batch, SCALE, EPSILON)
    out = torch.bmm(planes[0], planes[1].transpose(1, 2))
    own.launch("finish", tiles, map_of(out, pairs, 128), map_of(planes, pairs, 128), out_norm_weight, out_norm_bias, w_back, y, pairs, batch,
               EPSILON * SCALE * SCALE)
    return y
