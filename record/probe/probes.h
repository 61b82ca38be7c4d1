/* probes.h - the BPF programs in the kernel, on the allocators' functions of the processes recorded
 */
#ifndef RECORD_PROBES_H
#define RECORD_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "format/writer.h"
#include "record/allocator/allocator.h"
#include "record/filter/accounts.h"
#include "record/filter/filters.h"
#include "record/probe/links.h"
#include "record/target/target.h"

/* Frees that wait in the threads' slots for an allocation to ride along with: noted first, and
 * taken when the rings were read past all that was there by then. */

/* One such free, as it was noted. */
struct kept_free {
	uint64_t id;	  /* process and thread */
	uint64_t addr;	  /* the block */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

struct probes; /* opaque */

/* By which of the kernel's means probes are attached. */
enum probe_link {
	PROBE_LINK_AUTO,  /* multi where the kernel has it, else perf */
	PROBE_LINK_MULTI, /* uprobe_multi links, Linux 6.6; need CAP_BPF and CAP_PERFMON */
	PROBE_LINK_PERF,  /* a perf event for each probe; need CAP_SYS_ADMIN on current kernels */
};

#define PROBES_MAX_PROGRAMS 8
#define PROBES_RING_SIZE    (64u << 20) /* bytes of the second ring, if none are requested, */
#define PROBES_LEAST_RING   (1u << 20)	/* and where there is little memory */

/* What is settled when the programs are loaded, and holds for all processes. */
struct probes_opts {
	enum probe_link link;
	uint32_t stack_limit; /* most stack bytes that an event carries */
	uint32_t ring_size;   /* bytes that may wait for probes_consume(): a power of two, at least
				 two pages */
	const struct filter_opts *filters; /* borrowed for the call */
	bool follow;			   /* report forks, and record the children as well */
	bool by_ret;	/* no return is to be probed, also in children that are not recorded */
	bool by_thread; /* one of the processes has a main thread that has ended: multi links,
			   which go by it, would see nothing */
};

/* event() is called for each event, in the order of their making; @data is a struct event_small or
 * event_alloc of bpf/event.h.  A negative result ends the consuming at once. */
struct probes_consumer {
	int (*event)(void *ctx, void *data, size_t size);
	void *ctx;
};

/*
 * Load the programs; no process is probed yet.
 *
 * On success *@out is released with probes_free(); on failure it is NULL, and *@judged says whether
 * the kernel's verifier refused one of them.  Returns 0 or -errno, for probes_refused().
 */
int probes_load(struct probes **out, const struct probes_opts *opts, bool *judged);

/* Put the probes of @t, @links, on the functions of @a and on no others, and record it: from now on
 * its events are kept for probes_consume().  Probes that stay are not touched.  Returns 0 or
 * -errno; then it has no probes. */
int probes_place(struct probes *p, struct links *links, const struct target *t,
		 const struct allocators *a);

struct refusal;

/* Say why probes_load() or probes_place() failed for @t, as @refusal has it. */
void probes_refused(const struct target *t, const struct refusal *refusal);

/* Say why probes_place() failed for @t, a child, with @err; @perf: by perf events. */
void probes_explain(const struct target *t, int err, bool perf);

/* Record the process @t: it is put into the table of processes, or its code there is replaced by
 * that of @a.  It leaves the table by itself when it ends.  Returns 0 or -errno, -ESRCH when it has
 * ended. */
int probes_set_code(struct probes *p, const struct target *t, const struct allocators *a);

/* Process @pid has an interpreter at @at: its allocations are sent with its frames.  Returns 0 or
 * -errno. */
int probes_set_python(struct probes *p, pid_t pid, const struct event_python *at);

/* Say which function receives the events; before the first probes_consume(). */
int probes_set_consumer(struct probes *p, const struct probes_consumer *consumer);

/* The @i-th of the descriptors that are readable when much is waiting; little is waiting for as
 * long as the caller likes.  -1: there are no more. */
int probes_fd(const struct probes *p, int i);

/* Nanoseconds until a quarter of the first ring has come, if it goes on as since the last call. */
uint64_t probes_pace(struct probes *p, uint64_t now_ns);

/* Note the frees that wait for an allocation of their threads. */
void probes_note_freed(struct probes *p);

/* Was all consumed that was in the rings when they were noted? */
bool probes_caught_up(const struct probes *p);

/* Take one of those noted that waits still, if all that came before it was consumed.  Begin with
 * *@at 0; false: there is none from there on. */
bool probes_freed(struct probes *p, size_t *at, struct kept_free *free);

/* From now on the caller waits for probes_fd() (@waits), or it will look by itself: then it need
 * not be woken. */
void probes_wait(struct probes *p, bool waits);

/* Hand what is waiting to the consumer, up to an event that is not complete.  Returns 0, or what
 * the consumer returned when that was negative. */
int probes_consume(struct probes *p);

/* Was all consumed that was there when probes_consume() was called last? */
bool probes_took_all(const struct probes *p);

/* Take out the probes of a process, in @links; in the background. */
void probes_drop(struct probes *p, struct links *links);

/* Return when all detached probes are gone. */
void probes_settle(struct probes *p);

/* Calls that begin now do not count: the probes are about to be detached. */
void probes_end(struct probes *p);

/* All probes are attached, and the recording begins now: before, no call counts.  So does the delay
 * that @filters ask for. */
void probes_begin(struct probes *p, const struct filter_opts *filters);

/* Record all threads from now on, whatever the filters say of threads, but those that are chosen to
 * be counted. */
void probes_all_threads(struct probes *p);

/* As choices_apply() and choices_count(). */
int probes_choose(struct probes *p, const struct choice *choice, char *why);
void probes_count_choices(const struct probes *p, struct choice_counts *counts);

/* A process has ended: forget what the filters know of it, or a part.  Returns whether there is
 * more to forget: then this is to be called again, some time later. */
bool probes_forget_ended(struct probes *p);

/* Write what was counted of threads, if it is time for that, or @last: it is the last time in a
 * trace.  Returns 0, -ENOMEM or what @writer returned. */
int probes_write_accounts(struct probes *p, struct mlk_writer *writer, bool last);
/* A trace begins, which has nothing of that yet. */
void probes_begin_accounts(struct probes *p);

/* Add what the kernel side lost and left out so far to @losses. */
void probes_losses(const struct probes *p, struct mlk_losses *losses);

/* With @opts, is a return probed only where that does no harm to a handler on an alternate stack?
 */
bool probes_spare_handlers(const struct probes_opts *opts);

/* Are they multi links, which need no CAP_SYS_ADMIN? */
bool probes_are_multi(const struct probes *p);

/* Write the descriptors of the programs that probes are attached with to @fds, which has room for
 * PROBES_MAX_PROGRAMS.  Returns how many. */
size_t probes_programs(const struct probes *p, int *fds);

/* Wait for the probes that were dropped, and unload the programs; NULL is allowed. */
void probes_free(struct probes *p);

#endif
