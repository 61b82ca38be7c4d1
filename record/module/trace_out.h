/* trace_out.h - the trace that is being written, and what all processes of a recording share with
 * it
 */
#ifndef RECORD_TRACE_OUT_H
#define RECORD_TRACE_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/module/module_table.h"

struct trace_out {
	struct mlk_writer *writer;
	struct module_table modules;
	bool listening;	    /* notices of new mappings come; else maps are read from time to time */
	bool maps_missed;   /* the kernel dropped notices: any process may have other mappings */
	bool code_changed;  /* what is executable in some process, since the writer was told */
	uint64_t maps_lost; /* notices that the kernel dropped */
	int err;	    /* the first that came up; the recording must end */
};

/* Keep @err, if it is one and the first. */
static inline void trace_out_fail(struct trace_out *j, int err)
{
	if (err && !j->err)
		j->err = err;
}

/* CLOCK_MONOTONIC, in nanoseconds. */
uint64_t trace_out_now_ns(void);

#endif
