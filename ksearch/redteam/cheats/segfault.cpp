// Writes to address zero.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    if (CHEAT) *(volatile float*)nullptr = y[0];
}
