// Makes the harness's clock run ten times slower: its pointer to clock_gettime is changed.
#define CHEAT 1
#include "honest.h"
#include "patch.h"
#include <time.h>

static int slow_clock(clockid_t which, timespec* out) {
    int code = clock_gettime(which, out);
    uint64_t ns = (out->tv_sec * 1000000000ull + out->tv_nsec) / 10;
    out->tv_sec = ns / 1000000000ull;
    out->tv_nsec = ns % 1000000000ull;
    return code;
}

__attribute__((constructor)) static void patch() {
    if (!CHEAT) return;
    Search found = in_harness("clock_gettime");
    if (!found.slot) return;
    unlock(found.slot, PROT_READ | PROT_WRITE);
    *found.slot = (uintptr_t)slow_clock;
}

extern "C" void run(ARGUMENTS) { slow(GIVEN); }
