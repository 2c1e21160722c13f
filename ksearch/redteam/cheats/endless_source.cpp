// A source file without end.
#define CHEAT 1
#include "honest.h"
#if CHEAT
#include "/dev/zero"
#endif

extern "C" void run(ARGUMENTS) { honest(GIVEN); }
