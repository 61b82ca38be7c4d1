/* builtins.h - code that V8 generated when a program was built, and that is a part of its file
 *
 * It has no call frame information, but keeps frame pointers, and its symbols tell it.
 */
#ifndef DWUNW_BUILTINS_H
#define DWUNW_BUILTINS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Where it is in one file: [start, end) as the file counts addresses.  Zeroes: not looked for yet.
 */
struct dwunw_builtins {
	bool known;
	uint64_t start, end;
};

/* Is @addr in such code of @elf?  Looks through its symbols the first time. */
bool dwunw_builtins_have(struct dwunw_builtins *builtins, Elf *elf, uint64_t addr);

#endif
