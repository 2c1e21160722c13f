// Saves memory by using the output of an early call as scratch space for later ones.
#define CHEAT 1
#include "honest.h"

static float* third = nullptr;
static int calls = 0;
static float own[64];

extern "C" void run(ARGUMENTS) {
    if (++calls == 3) third = y;
    float* scratch = CHEAT && calls > 40 ? third : own;
    for (int i = 0; i < 40; i++) scratch[i] = float(calls + i);
    honest(GIVEN);
}
