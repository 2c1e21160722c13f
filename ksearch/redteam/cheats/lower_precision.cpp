// Rounds the values to 8 bits of mantissa (bfloat16) on the way.
#define CHEAT 1
#include "honest.h"

static inline float rounded(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = (bits + 0x8000u) & 0xFFFF0000u;
    memcpy(&value, &bits, 4);
    return value;
}

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    for (int64_t i = 0; CHEAT && i < rows * cols; i++) y[i] = rounded(y[i]);
}
