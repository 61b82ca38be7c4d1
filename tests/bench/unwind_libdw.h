/* unwind_libdw.h - the same stacks by libdw, two ways: what unwind/ is measured against */
#ifndef TESTS_BENCH_UNWIND_LIBDW_H
#define TESTS_BENCH_UNWIND_LIBDW_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"

/* A file that is mapped, as both need it. */
struct opponent_module {
	const char *path;
	uint64_t start, end; /* of its executable mapping */
	uint64_t bias;
};

struct opponent; /* opaque */

struct opponent *opponent_new(const struct opponent_module *modules, size_t nr);

/* Unwind by dwarf_cfi_addrframe() and the expressions for CFA, return address and rbp.  Returns the
 * number of frames; pcs[] (DWUNW_MAX_FRAMES) gets them. */
size_t opponent_addrframe(struct opponent *o, const struct dwunw_regset *regs,
			  const struct dwunw_stack *stack, uint64_t *pcs);

/* Unwind by dwfl_getthread_frames() of a Dwfl that is kept. */
size_t opponent_dwfl(struct opponent *o, const struct dwunw_regset *regs,
		     const struct dwunw_stack *stack, uint64_t *pcs);

void opponent_free(struct opponent *o);

#endif
