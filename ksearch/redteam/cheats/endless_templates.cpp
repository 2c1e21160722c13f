// Two to the power of three hundred instances of a template: compiles until the end of days.
#define CHEAT 1
#include "honest.h"

template <int depth, uint64_t path> struct Tree {
    static constexpr int value = Tree<depth - 1, path * 2>::value + Tree<depth - 1, path * 2 + 1>::value;
};
template <uint64_t path> struct Tree<0, path> {
    static constexpr int value = 1;
};

extern "C" void run(ARGUMENTS) {
    honest(GIVEN);
    if (Tree<CHEAT ? 300 : 3, 1>::value < 0) y[0] = 0;
}
