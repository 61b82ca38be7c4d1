/* minidebug.h - the symbol table in .gnu_debugdata, an ELF file compressed by xz */
#ifndef DWUNW_MINIDEBUG_H
#define DWUNW_MINIDEBUG_H

#include <libelf.h>

/* Zeroes make an empty one. */
struct dwunw_minidebug {
	Elf *elf; /* NULL: none */
	void *bytes;
};

/* Read that of @elf.  What takes more memory than any real one is refused.  Returns 0 (there may be
 * none), -ENOMEM, or -EINVAL when it cannot be read; only after 0 can there be one in *out. */
int dwunw_minidebug_open(struct dwunw_minidebug *out, Elf *elf);

void dwunw_minidebug_close(struct dwunw_minidebug *mini);

#endif
