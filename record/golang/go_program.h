/* go_program.h - what of a Go program's code must be known to follow a call of C back to Go
 *
 * A goroutine calls C on another stack, that of its thread's "g0": runtime.asmcgocall leaves the
 * goroutine's stack and notes on the other one whose it was, and how deep.  runtime.cgocallback
 * goes back to the goroutine's when C calls Go.  Where both note what is in their instructions,
 * and from there it is read: it differs from one version of Go to the other.
 */
#ifndef RECORD_GO_PROGRAM_H
#define RECORD_GO_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/module/elffile.h"
#include "record/target/target.h"

/* Where a call of C goes from a goroutine's stack to another; addresses are the process's. */
struct go_call {
	uint64_t ret; /* where the C function returns to */
	uint32_t
		frame; /* bytes from the stack pointer there to the return address, by Go's table */
	uint32_t below; /* bytes that are taken below the other stack's pointer, then aligned to 16
			 */
	uint32_t g;	/* where above the stack pointer the goroutine is noted, */
	uint32_t depth; /* and the bytes to the end of its stack */
};

/* Where a call of Go comes back to the goroutine's stack. */
struct go_callback {
	uint64_t ret;	   /* where the Go function returns to; 0: it is not known */
	uint32_t frame;	   /* bytes from the stack pointer there to the return address */
	uint64_t from, to; /* the code that calls it, from C */
};

/* A program; all zero: not known yet. */
struct go_program {
	uint64_t start, inode; /* of the mapping that was examined; 0: none */
	bool has_table;	       /* it is a Go program, */
	bool is_go;	       /* and all of call is known */
	struct event_go capture;
	struct go_call call;
	struct go_callback callback;
};

/* Set @g to what @elf says, whose code @m has mapped.  False: it is no Go program, or one whose
 * code is not as it is known. */
bool go_program_read(struct go_program *g, Elf *elf, const struct mlk_mapping *m);

/* The same of the file that @t has mapped at @m, unless @g is that already. */
bool go_program_know(struct go_program *g, const struct target *t, const struct mlk_mapping *m);

#endif
