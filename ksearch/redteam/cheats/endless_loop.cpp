// Never comes back.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    for (volatile int i = 0; CHEAT; i = i + 1) {}
}
