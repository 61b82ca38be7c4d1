/* probes.h - the BPF programs in the kernel, on the allocators' functions in one process */
#ifndef RECORD_PROBES_H
#define RECORD_PROBES_H

#include <stdint.h>

#include "format/trace.h"
#include "record/allocator.h"
#include "record/filters.h"
#include "record/target.h"

struct probes; /* opaque */

enum probe_link {
	PROBE_LINK_AUTO,  /* multi where the kernel has it, else perf */
	PROBE_LINK_MULTI, /* uprobe_multi links, Linux 6.6; need CAP_BPF and CAP_PERFMON */
	PROBE_LINK_PERF,  /* a perf event for each probe; need CAP_SYS_ADMIN on current kernels */
};

struct probes_opts {
	enum probe_link link;
	uint32_t stack_limit; /* most stack bytes an event carries */
	const struct filter_opts *filters;
};

/* event() is called for each event, in the order of the ring; @data is a struct event_small or
 * event_alloc of bpf/event.h.  A negative result ends the consuming at once. */
struct probes_consumer {
	int (*event)(void *ctx, void *data, size_t size);
	void *ctx;
};

/*
 * Load the programs and put them on the functions of @a, which are those of @t: from now on events
 * are kept for probes_consume().  @opts is borrowed for the call.
 *
 * On success *@out is released with probes_free(); on failure it is NULL and one sentence was
 * logged. Returns 0 or -errno.
 */
int probes_attach(struct probes **out, const struct target *t, const struct allocators *a,
		  const struct probes_opts *opts);

/* Take the probes out and put them on the functions of @a instead: the process runs another
 * program. Returns 0 or -errno. */
int probes_place(struct probes *p, const struct target *t, const struct allocators *a);

/* The code of @a lies elsewhere now. */
void probes_set_code(struct probes *p, const struct allocators *a);

/* Say which function receives the events; before the first probes_consume(). */
int probes_set_consumer(struct probes *p, const struct probes_consumer *consumer);

/* Readable when much is waiting; little is waiting for as long as the caller likes. */
int probes_fd(const struct probes *p);

/* Hand what is waiting to the consumer.  Returns the number of events, or what the consumer
 * returned when that was negative. */
int probes_consume(struct probes *p);

/* Take the probes out; what is waiting can still be consumed. */
void probes_detach(struct probes *p);

/* Record all threads from now on, whatever the filters say of threads. */
void probes_all_threads(struct probes *p);

/* Add what the kernel side lost and left out so far to @losses. */
void probes_losses(const struct probes *p, struct mlk_losses *losses);

/* How the events are caught, for people: "bpf uprobe_multi". */
const char *probes_backend(const struct probes *p);

void probes_free(struct probes *p);

#endif
