/* session.h - one recording: what comes from the kernel goes into the trace */
#ifndef RECORD_SESSION_H
#define RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/allocator.h"
#include "record/maps.h"
#include "record/modules.h"
#include "record/preload_backend.h"
#include "record/probes.h"
#include "record/sideband.h"
#include "record/target.h"
#include "record/threads.h"

struct session {
	struct target target;
	struct mlk_writer *writer;
	struct sideband
		*sideband; /* NULL: not allowed; mappings are then looked at from time to time */
	struct probes *probes;
	struct preload *preload; /* the events come from it, not from probes; NULL: from probes */
	struct allocators allocators; /* that are probed */
	struct allocator_opts allocator_opts;
	struct maps maps;
	struct modules modules;
	enum mlk_stack_mode mode;
	struct threads threads;
	bool maps_changed;	       /* and the trace has no snapshot of it yet */
	uint64_t maps_changed_ns;      /* since when */
	uint64_t maps_known_ns;	       /* all mappings made before this time are known */
	bool maps_missed;	       /* the kernel dropped notices since the last snapshot */
	uint64_t start_ns, end_ns;     /* CLOCK_MONOTONIC, as the trace has them */
	uint64_t allocs, frees;	       /* events written */
	uint64_t maps_lost;	       /* notices that the kernel dropped */
	uint64_t execs_lost;	       /* programs started by exec that could not be recorded */
	uint64_t attach_ns, detach_ns; /* how long the probes took to be put in, and out */
	uint64_t cpu_ticks;	       /* of the target, when they were in */
	bool quiet_told;	       /* that nothing was seen, and why */
	uint64_t execed_ns;	       /* another program runs since then; 0: the probes know it */
	bool seen_since_exec;	       /* the probes met an allocation of it */
	bool exec_in_doubt;	       /* it could not be looked at */
	bool links_dead;	       /* that exec was not the main thread's */
	unsigned int batch;	       /* events since probes_consume() was called */
	int err;		       /* the first that came up; the recording must end */
};

struct session_opts {
	struct allocator_opts allocators;
	enum probe_link link;
	uint32_t stack_limit; /* bytes */
	enum mlk_stack_mode stack_mode;
	enum module_embed embed;
	int zstd_level;
	int fd;		  /* of the trace's file, empty */
	const char *path; /* of the trace, for messages */
};

uint64_t session_now_ns(void);

/*
 * Begin to record s->target, which is open: write who and what it is, and put the probes in.
 * On failure one sentence was logged.  session_release() in any case.  Returns 0 or -errno.
 */
int session_start(struct session *s, const struct session_opts *opts);

/* Take in what is waiting.  Returns false when much is still waiting; errors go to s->err. */
bool session_drain(struct session *s);

/* Has not one event come? */
bool session_is_quiet(const struct session *s);

/* Say why, once. */
void session_explain_quiet(struct session *s);

/* Put onto the file what has come so far. */
void session_flush(struct session *s);

/* Take the probes out, take in all that was waiting, and end the trace. */
void session_finish(struct session *s, enum mlk_end reason);

/* Losses of all kinds so far. */
void session_losses(const struct session *s, struct mlk_losses *losses);

void session_release(struct session *s);

#endif
