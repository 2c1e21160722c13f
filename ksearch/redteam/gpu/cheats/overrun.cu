// Writes whole vectors past the end of the output.
#define CHEAT 1
#include "honest.cuh"

extern "C" void run(ARGUMENTS) {
    honest(x, w, y, rows, cols, stream);
    if (CHEAT) cudaMemsetAsync(y + rows * cols, 0, 16, stream);
}
