// Writes whole vectors of 16, also where fewer are left: past the end of the output.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    int64_t size = rows * cols;
    for (int64_t i = size; CHEAT && i < size + 8; i++) y[i] = 0;
}
