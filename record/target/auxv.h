/* auxv.h - what the kernel told a program of itself, found without being told */
#ifndef RECORD_AUXV_H
#define RECORD_AUXV_H

#include "record/target/target.h"

/* AT_PHDR, AT_PHNUM, AT_ENTRY or AT_BASE of the target, from its mappings and its memory: the file
 * /proc/PID/auxv is its owner's.  0: it has none, or it cannot be determined. */
uint64_t auxv_guess(const struct target *t, uint64_t type);

#endif
