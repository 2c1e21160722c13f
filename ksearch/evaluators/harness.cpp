// Calls a program's entry point and times each call. Every argument is a pointer or an int64_t, so they all travel
// in the integer registers and then on the stack; arguments beyond those that the program takes do no harm.
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef uint64_t W;
static inline W now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return W(t.tv_sec) * 1000000000u + W(t.tv_nsec);
}

#define A6(a, i) a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5]
#define W6 W, W, W, W, W, W
static void call(void* f, const W* a, int n) {
    if (n <= 6) ((void (*)(W6))f)(A6(a, 0));
    else if (n <= 12) ((void (*)(W6, W6))f)(A6(a, 0), A6(a, 6));
    else if (n <= 24) ((void (*)(W6, W6, W6, W6))f)(A6(a, 0), A6(a, 6), A6(a, 12), A6(a, 18));
    else
        ((void (*)(W6, W6, W6, W6, W6, W6, W6, W6))f)(A6(a, 0), A6(a, 6), A6(a, 12), A6(a, 18), A6(a, 24), A6(a, 30),
                                                       A6(a, 36), A6(a, 42));
}

// Write back and drop every cache line of these ranges, from all levels of the hierarchy.
extern "C" int ksearch_flush(const W* ranges, int count) {
#if defined(__x86_64__)
    static int optimised = -1;
    if (optimised < 0) {
        unsigned a, b = 0, c, d;
        optimised = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1);
    }
    for (int r = 0; r < count; r++) {
        char* at = (char*)(ranges[2 * r] & ~W(63));
        char* end = (char*)(ranges[2 * r] + ranges[2 * r + 1]);
        if (optimised)
            for (; at < end; at += 64) asm volatile("clflushopt %0" : "+m"(*at));
        else
            for (; at < end; at += 64) asm volatile("clflush %0" : "+m"(*at));
    }
    asm volatile("mfence" ::: "memory");
    return 1;
#elif defined(__aarch64__)
    for (int r = 0; r < count; r++)
        for (W at = ranges[2 * r] & ~W(63); at < ranges[2 * r] + ranges[2 * r + 1]; at += 64)
            asm volatile("dc civac, %0" ::"r"(at) : "memory");
    asm volatile("dsb ish" ::: "memory");
    return 1;
#else
    return 0;
#endif
}

// `args`: calls x stride words; `ranges`: calls x count x (address, bytes). Returns 0, 1 (exception), 2 (bad_alloc),
// with the failing call in *at and the exception's text in `what` (`size` bytes).
extern "C" int ksearch_run(void* entry, const W* args, int stride, int nargs, const W* ranges, int count, int calls,
                           W* ns, int* at, char* what, int size) {
    for (int i = 0; i < calls; i++) {
        *at = i;
        if (count) ksearch_flush(ranges + W(2) * count * i, count);
        try {
            W start = now();
            call(entry, args + W(stride) * i, nargs);
            ns[i] = now() - start;
        } catch (const std::bad_alloc&) {
            return 2;
        } catch (const std::exception& e) {
            strncpy(what, e.what(), size - 1);
            return 1;
        } catch (...) {
            strncpy(what, "an exception that is no std::exception", size - 1);
            return 1;
        }
    }
    return 0;
}
