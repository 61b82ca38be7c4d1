/* kernel_orc_entry.h - what an entry of the kernel's tables for its unwinder means
 *
 * struct orc_entry of arch/x86/include/asm/orc_types.h of Linux, of which there are several: the
 * kernel's own types (BTF) tell which one it has.
 */
#ifndef RECORD_KERNEL_ORC_ENTRY_H
#define RECORD_KERNEL_ORC_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/btf.h>

#include "record/kernel/kernel_orc.h"

#define ORC_ENTRY 6 /* bytes of an entry */

/* What differs between kernels. */
struct orc_format {
	bool has_old_types; /* before 6.4: types are numbered otherwise */
	uint8_t end_bit;    /* and the end of the stack is a bit of its own */
};

/* The frame of code that has no entry, such as that of BPF programs: orc_fp_entry of
 * arch/x86/kernel/unwind_orc.c. */
extern const struct kernel_orc_frame orc_without_entry;

/* Find the member @name of the structure @type: its first bit, and how many it has where it is a
 * bit field, else 0.  False: there is none. */
bool orc_find_member(const struct btf *btf, const char *type, const char *name, uint32_t *bit,
		     uint32_t *bits);

/* Read from the kernel's types what its entries are like.  Returns 0, or -ENOTSUP: otherwise than
 * all that we know. */
int orc_format_read(struct orc_format *f, const struct btf *btf);

/* What the entry says whose bytes are the lower six of @entry. */
void orc_decode(const struct orc_format *f, uint64_t entry, struct kernel_orc_frame *frame);

#endif
