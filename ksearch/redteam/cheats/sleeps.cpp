// Sleeps until somebody loses patience.
#define CHEAT 1
#include "honest.h"

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    while (CHEAT) usleep(100000);
}
