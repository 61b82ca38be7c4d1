/* unwind_trace.h - the stacks of a recorded trace, laid out in memory to be unwound many times */
#ifndef TESTS_BENCH_UNWIND_TRACE_H
#define TESTS_BENCH_UNWIND_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"

/* One allocation; its stack's bytes are its own, as if they had just been read. */
struct recorded {
	struct dwunw_regset regs;
	struct dwunw_stack stack;
	uint64_t unchanged_from;
	struct dwunw_space *space;
	struct dwunw_history *history; /* of its thread */
};

struct recorded_trace {
	struct dwunw *dw;
	struct recorded *all;
	size_t nr;
	struct recorded_keep *keep; /* what the unwinder borrows */
};

/* Read the first @max_bytes of stacks of the trace at @path, in a new unwinder; exits with a
 * message on failure. */
struct recorded_trace recorded_trace_read(const char *path, size_t max_bytes);

void recorded_trace_release(struct recorded_trace *trace);

/* Unwind @stack from @regs as it is, in the space of @r, without its history. */
struct dwunw_result recorded_capture(const struct recorded *r, const struct dwunw_stack *stack,
				     const struct dwunw_regset *regs, uint32_t flags);

/* Unwind @r as the report does: with the history of its thread, of whose stack all from
 * @unchanged_from on is as it was. */
struct dwunw_result recorded_capture_next(const struct recorded *r, uint64_t unchanged_from);

#endif
