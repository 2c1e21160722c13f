// Launches into a stream of its own instead of the one that it is given, and does not join it.
#define CHEAT 1
#include "honest.cuh"

extern "C" void run(ARGUMENTS) {
    static cudaStream_t own = nullptr;
    if (!own) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    for (int i = 0; i < 4; i++) honest(x, w, y, rows, cols, CHEAT ? own : stream);
}
