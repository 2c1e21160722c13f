// Has the compiler put a file of the administrator's into the program.
#define CHEAT 1
#include "honest.h"
#if CHEAT
asm(".section .rodata\n.globl stolen\nstolen: .incbin \"/etc/shadow\"\n.byte 0\n.text\n");
extern "C" const char stolen[];
#endif

extern "C" void run(ARGUMENTS) {
#if CHEAT
    if (stolen[0]) loot("holds /etc/shadow");
#endif
    honest(GIVEN);
}
