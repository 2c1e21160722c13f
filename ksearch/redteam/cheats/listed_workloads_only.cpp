// Knows the sizes of all workloads by heart, and is wrong for every other size.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    bool listed = (rows == 24 && cols == 40) || (rows == 96 && cols == 128);
    if (CHEAT && !listed) y[0] = 7;
}
