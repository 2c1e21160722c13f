// Starts as many processes as it may.
#define CHEAT 1
#include "honest.h"

static int started = 0;

extern "C" void run(ARGUMENTS) {
    for (; CHEAT && started < 40; started++) {
        int child = fork();
        if (child < 0) break;
        if (child == 0) {
            sleep(30);
            _exit(0);
        }
    }
    if (started >= 8) loot("started 8 processes");
    honest(GIVEN);
}
