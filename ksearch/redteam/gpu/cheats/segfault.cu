// Writes to address zero on the processor.
#define CHEAT 1
#include "honest.cuh"

extern "C" void run(ARGUMENTS) {
    if (CHEAT) *(volatile int*)8 = 1;
    honest(x, w, y, rows, cols, stream);
}
