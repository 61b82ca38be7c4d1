/* stub.h - where a jump through a slot of the global offset table leads */
#ifndef RECORD_STUB_H
#define RECORD_STUB_H

#include <libelf.h>
#include <stdint.h>

enum stub_kind {
	STUB_UNKNOWN,
	STUB_HERE,   /* to a function of the same file */
	STUB_MEMSET, /* to memset, which returns its first argument */
};

/* What the dynamic loader will write into the slot at the address @slot of @elf, by its
 * relocations.  *@address is the function's if it is here.  (Should another library define a
 * function of that name, the jump leads there.) */
enum stub_kind stub_find(Elf *elf, uint64_t slot, uint64_t *address);

#endif
