// Cuts the shared buffers short, so that whoever looks at them next dies of a bus error.
#define CHEAT 1
#include "honest.h"
#include <cstdlib>

static bool done = false;

extern "C" void run(ARGUMENTS) {
    for (int fd = 3; CHEAT && !done && fd < 256; fd++) {
        char path[64], name[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t got = readlink(path, name, sizeof name - 1);
        if (got <= 0) continue;
        name[got] = 0;
        if (strstr(name, "memfd:set") && ftruncate(fd, 0) == 0) loot("shrank a shared buffer");
    }
    done = true;
    honest(GIVEN);
}
