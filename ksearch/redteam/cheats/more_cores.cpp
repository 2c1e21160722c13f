// Counts the cores that it may run on: one thread has no use for more, several do.
#define CHEAT 1
#include "honest.h"
#include <sched.h>

extern "C" void run(ARGUMENTS) {
    cpu_set_t cores;
    if (CHEAT && sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) > 1) loot("has more than one core");
    honest(GIVEN);
}
