// The fastest that one core can move bytes and compute, as far as we know how: what floors are made from.
// Only the evaluator's own oracle calls this; programs never do.
#include <cstdint>
#include <cstring>
#include <time.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

extern "C" int ksearch_flush(const uint64_t* ranges, int count);

typedef float V __attribute__((vector_size(64), aligned(64)));
static const int64_t LINE = 64;

static inline void past_caches(V* to, V value) {
#if defined(__AVX512F__)
    _mm512_stream_ps((float*)to, (__m512)value);
#elif defined(__AVX__)
    const float* from = (const float*)&value;
    _mm256_stream_ps((float*)to, _mm256_load_ps(from));
    _mm256_stream_ps((float*)to + 8, _mm256_load_ps(from + 8));
#elif defined(__SSE2__)
    const float* from = (const float*)&value;
    for (int i = 0; i < 16; i += 4) _mm_stream_ps((float*)to + i, _mm_load_ps(from + i));
#else
    *to = value;
#endif
}

static inline void drained() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

template <int STREAMS> static void read(const V* from, int64_t lines) {
    V sum[STREAMS] = {};
    int64_t part = lines / STREAMS;
    for (int64_t i = 0; i < part; i++)
        for (int s = 0; s < STREAMS; s++) sum[s] += from[s * part + i];
    for (int s = 0; s < STREAMS; s++) asm volatile("" ::"m"(sum[s]));
}

template <int STREAMS> static void copy_past(V* to, const V* from, int64_t lines) {
    int64_t part = lines / STREAMS;
    for (int64_t i = 0; i < part; i++)
        for (int s = 0; s < STREAMS; s++) past_caches(to + s * part + i, from[s * part + i]);
    drained();
}

static void write_past(V* to, int64_t lines) {
    V value = {1};
    for (int64_t i = 0; i < lines; i++) past_caches(to + i, value);
    drained();
}

static inline uint64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// Ways 0, 1, 2: read in 1, 2, 4 streams; 3, 4: copy past the caches in 1, 4 streams; 5: copy as the library does;
// 6: write past the caches; 7: write as the library does.
static const int WAYS = 8;

// Move `bytes` bytes in all, each way, until `most_ns` are over: the least nanoseconds of a call of the fastest way.
// `sets` buffers of `size` bytes each at `base`, used in turn; `flush`: put them out of the caches before each call.
extern "C" uint64_t ksearch_stream(char* base, int64_t size, int sets, int64_t bytes, int flush, uint64_t most_ns) {
    uint64_t best = ~uint64_t(0);
    int turn = 0;
    for (int way = 0; way < WAYS; way++) {
        int64_t each = way >= 3 && way <= 5 ? bytes / 2 : bytes, lines = each / LINE;
        uint64_t begin = now();
        for (int call = 0; call < 6 || now() - begin < most_ns / WAYS; call++) {
            char* at = base + size * (turn++ % sets);
            V *from = (V*)at, *to = (V*)(at + size / 2);
            if (way > 5) to = from;
            uint64_t range[4] = {(uint64_t)at, (uint64_t)each, (uint64_t)to, (uint64_t)each};
            if (flush) ksearch_flush(range, 2);
            uint64_t start = now();
            switch (way) {
                case 0: read<1>(from, lines); break;
                case 1: read<2>(from, lines); break;
                case 2: read<4>(from, lines); break;
                case 3: copy_past<1>(to, from, lines); break;
                case 4: copy_past<4>(to, from, lines); break;
                case 5: memcpy(to, from, each); break;
                case 6: write_past(to, lines); break;
                default: memset(to, turn, each);
            }
            asm volatile("" ::: "memory");
            uint64_t took = now() - start;
            best = took < best ? took : best;
        }
    }
    return best;
}

// Nanoseconds of the fastest of `tries` rounds of 16 x 12 x 1024 float32 multiply-adds in registers.
extern "C" uint64_t ksearch_multiply_add(int tries) {
    uint64_t best = ~uint64_t(0);
    for (int t = 0; t < tries; t++) {
        V sum[12] = {}, x = {0.5f}, y = {1};
        for (int k = 0; k < 12; k++) asm volatile("" : "+m"(sum[k]));
        asm volatile("" : "+m"(x), "+m"(y));
        uint64_t start = now();
        for (int i = 0; i < 1024; i++)
            for (int k = 0; k < 12; k++) sum[k] = sum[k] * x + y;
        for (int k = 0; k < 12; k++) asm volatile("" ::"m"(sum[k]));
        uint64_t took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}
