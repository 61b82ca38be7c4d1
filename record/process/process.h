/* process.h - a process under recording: its mappings, threads and probes, from its start to its
 * end */
#ifndef RECORD_PROCESS_H
#define RECORD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/allocator/allocator.h"
#include "record/generated/jitdump.h"
#include "record/generated/perf_map.h"
#include "record/golang/go_program.h"
#include "record/interpreter/interpreter.h"
#include "record/module/module_table.h"
#include "record/probe/links.h"
#include "record/process/given_back.h"
#include "record/ptrace/seize.h"
#include "record/target/maps.h"
#include "record/target/target.h"
#include "record/target/threads.h"
#include "record/target/walk_plan.h"

/* Another program in the same process. */
struct process_exec {
	uint64_t since_ns; /* it runs since then, and the probes do not know it yet; 0: they do */
	bool seen;	   /* the probes met an allocation of it */
	bool in_doubt;	   /* it could not be examined, */
	const char *why;   /* because it so: static text, behind "it"; NULL: it ended before */
	bool links_dead;   /* that exec was not the main thread's */
	bool loaded;	   /* held by the tracer, with its libraries mapped and not begun */
	bool native;	   /* it is a 64-bit x86-64 program */
};

/* What becomes of the probes when the main thread has ended; see leader.c. */
struct process_leader {
	bool ended, due;      /* it has; and that was not examined yet */
	bool told;	      /* that the probes are lost */
	pid_t by;	      /* the thread by which the kernel knows the process; 0: task's */
	size_t gone;	      /* breakpoints that cannot be had back */
	struct links keepers; /* of the others */
};

/* Samples of its memory; all zero: none was taken.  See record/session/sample/. */
struct process_memory {
	uint64_t due_ns, step_ns; /* when the next one is due, and the one behind after that */
	struct walk_plan plan;	  /* of walks through its pages */
	bool waits;		  /* @sample waits for what such a walk will tell, */
	struct mlk_memory sample; /* and is not in the trace yet */
};

/* All of its mappings in the trace; all zero: none yet.  See record/session/sample/. */
struct process_regions {
	uint64_t first_ns, last_ns; /* when they were read */
	uint64_t took_ns;	    /* to read them last */
	bool wanted;		    /* with the next sample, whatever that takes */
	bool changed;		    /* it runs another program since */
};

/* All that is known of a process; it owns that, until process_release(). */
struct process {
	struct target target;
	pid_t parent;	    /* that forked it while it was recorded; 0: recorded from the first */
	struct links links; /* its probes */
	struct stop hold;   /* by us, while they are attached */
	struct allocators allocators; /* that are probed */
	struct maps maps;	      /* executable mappings */
	struct go_program golang;     /* of the program that it runs, once a goroutine was met */
	size_t nr_mappings;	      /* all, when they were read last */
	struct maps before;	  /* those that are gone, but perhaps not from stacks yet to come */
	bool before_new;	  /* some are gone since the rings began to be read last */
	bool maps_changed;	  /* and the trace has no snapshot of it yet */
	uint64_t maps_changed_ns; /* since when */
	struct threads threads;
	struct process_exec exec;
	struct process_leader leader;
	struct process_memory memory;
	struct process_regions regions;
	struct perf_map perf_map;
	struct jitdump jitdump;
	struct given_back given_back;
	struct interpreter interpreter;
	uint32_t passes, snapshot; /* through its memory: so many, and the last one's number */
	uint64_t exit_ns;	   /* since when it is held at its end; 0: it is not */
	uint64_t born_ns;	   /* when it was forked, CLOCK_MONOTONIC */
	uint64_t cpu_ticks;	   /* used when the probes were attached */
	bool traced;		   /* its children are held at their start, as it was, */
	uint64_t traced_ns;	   /* those born since then */
	bool announced;		   /* a child: the trace says whose */
	bool probed;		   /* the probes are in */
	bool ended;		   /* there is no such process any more */
	bool leaves;		   /* that was so before the rings were read last */
	bool exited;		   /* and all its events have come */
	bool over;		   /* what comes was caught while the probes were detached */
	bool refused;		   /* it runs a program that this user may not watch */
	bool deaf;	/* no notices come of it, nor of its children: what is mapped is read */
	pid_t heard_by; /* the process, it or one that it descends from, that was listened to again;
			   0: none was */
};

/* Forget all that is known of @p and take its links back; the caller has dropped them. */
void process_release(struct process *p);

/* What follows puts errors into out->err, and sets out->code_changed as it should be. */

/* The kernel knows that @m is mapped since @time_ns. */
void process_mapped(struct process *p, struct trace_out *out, uint64_t time_ns,
		    const struct mlk_mapping *m);

/* Of @maps, which it has now, the code that it generated is there since @time_ns; what is gone
 * since then counts as mapped still. */
void process_generated(struct process *p, struct trace_out *out, uint64_t time_ns,
		       const struct maps *maps);

/* It runs another program since @time_ns: its mappings are gone. */
void process_execed(struct process *p, struct trace_out *out, uint64_t time_ns);

/* Read all mappings anew and write them as valid from @time_ns.  False: the process has ended. */
bool process_snapshot(struct process *p, struct trace_out *out, uint64_t time_ns);

/* @maps, executable and identified, are its mappings from @time_ns on, and all events of before are
 * in; it is given those of before. */
void process_set_maps(struct process *p, struct trace_out *out, uint64_t time_ns,
		      struct maps *maps);

/* Take over from @parent what a child of fork has at its birth, at p->born_ns: mappings and the
 * main thread's name.  @parent_tid: the thread that forked. */
void process_inherit(struct process *p, struct trace_out *out, struct process *parent,
		     uint32_t parent_tid);

/* Write a snapshot if mappings changed; not for each notice, because some programs map code all the
 * time. */
void process_flush_maps(struct process *p, struct trace_out *out);

/* All events are in that were made under the mappings of before, unless some are gone since the
 * rings began to be read. */
void process_forget_before(struct process *p, struct trace_out *out);

/* Put into a trace that begins what is known of @p: all mappings, their modules, and later its
 * threads. */
void process_begin_trace(struct process *p, struct trace_out *out);

/* Put names of threads that are new into the trace. */
void process_write_threads(struct process *p, struct trace_out *out);

/* Where code is in all processes of a recording, which decides the words of stacks that are kept:
 * ranges that the writer was told, ascending, apart from each other. */
struct code_ranges {
	struct mlk_mapping *v;
	size_t nr;
};

/* Tell out->writer what is executable in the @nr processes of @all: now, and before where events of
 * then may still come.  Nothing is told again that has not changed.  Errors go to out->err. */
void code_ranges_update(struct code_ranges *c, struct trace_out *out, struct process *const *all,
			size_t nr);

/* Forget the ranges: all is told again. */
void code_ranges_release(struct code_ranges *c);

#endif
