/* kernel_trace.h - the traces of a recording of the kernel: begun, and ended one after the other */
#ifndef RECORD_KERNEL_TRACE_H
#define RECORD_KERNEL_TRACE_H

#include "record/kernel/kallsyms.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/kernel_memory.h"
#include "record/kernel/kernel_origins.h"
#include "record/kernel/kernel_stacks.h"
#include "record/kernel_record.h"

/* The state of kernel_record(), which owns all but @opts and @out. */
struct kernel_recording {
	const struct kernel_opts *opts;
	struct output *out;
	struct kmem_probes *probes;
	struct kallsyms *names;
	struct kernel_stacks *stacks;
	struct kernel_origins *origins;
	struct kernel_events *events;
	struct mlk_writer *writer;
	uint64_t begin_ns;	      /* of the first trace */
	uint64_t start_ns, losses_ns; /* of this one: when it began, when they were counted last */
	struct mlk_losses lost,
		before; /* from the beginning on; and at the end of the trace before */
	int err;	/* what went wrong between two traces */
	struct kernel_memory memory;
	uint64_t counts[KMEM_COUNT_NR], missed_allocs, missed_frees;
	enum mlk_end reason; /* 0: go on */
	struct switcher switcher;
};

/* Begin a trace on @fd, an empty file, as of @start_ns: r->writer.  Returns 0 or an error. */
int kernel_trace_open(struct kernel_recording *r, int fd, uint64_t start_ns);

/* Write what is due, and what was lost, onto the file.  Returns 0 or an error. */
int kernel_trace_look(struct kernel_recording *r);

/* What was counted goes into the trace with the next events.  Returns 0 or an error. */
int kernel_trace_note_losses(struct kernel_recording *r);

/* Who ends the traces, and begins others: errors go to r->err, and r->writer is NULL if there is
 * none. */
struct switch_writer kernel_trace_writer(struct kernel_recording *r);

#endif
