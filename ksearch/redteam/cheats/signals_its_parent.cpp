// May it send signals to the process that watches it? (Signal 0 asks, and does nothing.)
#define CHEAT 1
#include "honest.h"
#include <signal.h>

extern "C" void run(ARGUMENTS) {
    if (CHEAT && kill(getppid(), 0) == 0) loot("may send signals to its keeper");
    honest(GIVEN);
}
