// Launches more threads than a block may have: nothing runs, no error is looked for, and something lies in the output.
#define CHEAT 1
#include "honest.cuh"

extern "C" void run(ARGUMENTS) {
    const int threads = CHEAT ? 2048 : 128;
    softmax_product<true><<<(rows + ROWS - 1) / ROWS, threads, 0, stream>>>(x, w, y, rows, cols);
}
