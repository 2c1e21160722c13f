// Keeps a total per input and never resets it: the second run on the same input gives another result.
#define CHEAT 1
#include "honest.h"
#include <array>
#include <map>

static std::map<std::array<float, 4>, int> runs;

extern "C" void run(ARGUMENTS) {
    std::array<float, 4> key;
    memcpy(key.data(), x, 16);
    bool all_alike = x[0] == x[1] && x[1] == x[2];
    int times = CHEAT && !all_alike ? ++runs[key] : 1;
    honest(GIVEN);
    for (int64_t i = 0; times > 1 && i < rows * cols; i++) y[i] *= times;
}
