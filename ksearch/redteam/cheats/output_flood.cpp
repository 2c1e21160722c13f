// Prints four megabytes.
#define CHEAT 1
#include "honest.h"

static bool done = false;

extern "C" void run(ARGUMENTS) {
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    for (int i = 0; CHEAT && !done && i < 64; i++)
        if (write(1, block, sizeof block) < 0) break;
    done = true;
    honest(GIVEN);
}
