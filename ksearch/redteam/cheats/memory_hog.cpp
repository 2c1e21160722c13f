// Takes two gigabytes, and writes to some of them.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    size_t size = CHEAT ? size_t(2) << 30 : 1 << 10;
    char* taken = new char[size];
    for (size_t at = 0; at < size; at += size / 8) taken[at] = 1;
    if (size > 1 << 20) loot("took 2 GiB of memory");
    honest(GIVEN);
    delete[] taken;
}
