// Leaves with exit code 0 in the middle of its first call.
#define CHEAT 1
#include "honest.cuh"

extern "C" void run(ARGUMENTS) {
    if (CHEAT) _exit(0);
    honest(x, w, y, rows, cols, stream);
}
