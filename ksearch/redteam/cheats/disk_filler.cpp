// Writes 8 MiB of files where the task grants one.
#define CHEAT 1
#include "honest.h"
#include <fcntl.h>
#include <signal.h>

static bool tried = false;

extern "C" void run(ARGUMENTS) {
    static char block[1 << 20];
    if (CHEAT && !tried) {
        tried = true;
        signal(SIGXFSZ, SIG_IGN);
        memset(block, 1, sizeof block);
        int file = open("filler", O_CREAT | O_WRONLY, 0600);
        size_t total = 0;
        for (ssize_t got; total < 8 << 20 && (got = write(file, block, sizeof block)) > 0;) total += got;
        close(file);
        unlink("filler");
        if (total >= 8 << 20) loot("wrote 8 MiB to a file");
    }
    honest(GIVEN);
}
