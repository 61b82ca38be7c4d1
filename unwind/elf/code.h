/* code.h - a look at the machine code itself, where an image holds it */
#ifndef DWUNW_CODE_H
#define DWUNW_CODE_H

#include <libelf.h>
#include <stdint.h>

/* Do the bytes before the address @addr of the file end in a call instruction?  1, 0, or -1 if they
 * are not in the image. */
int dwunw_code_calls(Elf *elf, uint64_t addr);

#endif
