/* session.h - one recording: its processes, and what comes from the kernel for them */
#ifndef RECORD_SESSION_H
#define RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/base/waiting.h"
#include "record/inject/inject.h"
#include "record/module/module_table.h"
#include "record/preload/backend.h"
#include "record/probe/probes.h"
#include "record/probe/refusal.h"
#include "record/process/process.h"
#include "record/reach/snapshot.h"
#include "record/session/backend.h"
#include "record/session/session_loaded.h"
#include "record/session/unprobed.h"
#include "record/session/unrecorded.h"
#include "record/target/memory_walker.h"
#include "record/target/sideband.h"
#include "record/target/threads.h"
#include "record/trace/memory_list.h"
#include "record/trace/overrun_list.h"
#include "record/trace/tally.h"

struct go_stacks;
struct helper;
struct inject;
struct shared_view;
struct tracer;

/* Programs and children whose first allocations may be missing. */
struct session_gaps {
	uint64_t nr;
	uint64_t longest_ns; /* from the start to the probes */
};

/* Programs, each with its loader, that allocate by what was probed before: those begun last. */
struct known_programs {
	struct known_program {
		dev_t dev, loader_dev;
		ino_t inode, loader_inode;
	} v[256];
	size_t nr; /* ever known */
};

/* Programs of which it was said why they cannot be recorded: hashes of the last ones' paths. */
struct explained_programs {
#define EXPLAINED 64
	uint64_t hashes[EXPLAINED];
	size_t nr; /* ever explained */
};

/* Samples of the memory of all processes. */
struct session_memory {
	struct memory_list list;
	bool followed;	      /* the trace goes to a pipe: who reads it waits for samples */
	uint64_t due_ns;      /* when the next one is due */
	uint64_t walked_ns;   /* up to when time was allowed for walks through pages; */
	int64_t walk_left_ns; /* what is left of it: less than 0 if the last walk took longer */
	size_t first;	      /* in all[]: the process that is looked at first */
	size_t nr_waiting;    /* processes with a sample that waits for a walk */
	struct memory_walker *walker; /* NULL: nothing was walked through yet */
	bool walks;		      /* it does, through */
	struct process *walked;	      /* this one; NULL: that has ended */
	struct walk_size size;	      /* when that began */
};

/* Snapshots of the pointers in the memory of all processes. */
struct session_reach {
	unsigned int passes, most_passes; /* of each, and if pointers move fast; 0: none */
	bool stop;			  /* processes are stopped for it */
	uint32_t snapshot;		  /* number of the last one; 0: there is none */
	uint64_t taken;			  /* of processes; that are whole */
	struct task_regs *regs;		  /* NULL: not allowed */
	struct reach_snapshot *now;	  /* under way, of the process of; NULL: none */
	struct process *of;
};

/* Children that may have been started before their forks were listened to. */
struct running_children {
	struct running_child {
		pid_t pid;
		char name[16];
	} * v;
	size_t nr, room;
};

/* A recording's whole state.  It owns what it points to, but the helper and the tracer. */
struct session {
	const struct backend *backend; /* set by session_start() */
	struct trace_out out;
	struct sideband *sideband; /* NULL: not allowed */
	struct probes *probes;	   /* NULL: preload */
	struct preload *preload;   /* the events come from it; NULL: from probes */
	struct inject *inject;	   /* with preload: code in a process that runs; NULL: a command */
	struct go_stacks *go_stacks; /* NULL: no goroutine was met */
	uint32_t stack_limit;	     /* bytes of an event */
	struct tracer *tracer;	     /* holds the command's children at their start; NULL: none */
	struct process **all;	     /* in the order of their births; a number can come again */
	size_t nr, room;
	struct process *last;	 /* of the event before; NULL: none */
	struct code_ranges code; /* what the writer knows to be executable */
	struct allocator_opts allocator_opts;
	enum mlk_stack_mode mode;
	bool follow;	    /* children are recorded */
	bool no_file_names; /* names of generated and interpreted code are written without files */
	bool yields;	    /* no more events are taken while the writer is behind */
	bool looks;	 /* no events: only the memory is looked at; set before session_add_pid() */
	pid_t pid;	 /* the first process */
	char comm[64];	 /* its name */
	char named[512]; /* all that session_add_pid() added, for people */
	size_t nr_named;
	pid_t command;		      /* started by us: our child; 0: none */
	bool told_to_end;	      /* we are, by SIGTERM, SIGHUP, or SIGINT twice: in a hurry */
	uint64_t freed_ns;	      /* when frees that wait for an allocation are checked next */
	struct helper *helper;	      /* borrowed; NULL: none */
	uint64_t maps_known_ns;	      /* all mappings made before this time are known */
	uint64_t time_ns;	      /* of the event before that had a time; frees have none */
	uint64_t placing_ns;	      /* when attaching the probes began: the recording proper */
	uint64_t start_ns, end_ns;    /* CLOCK_MONOTONIC, as the trace has them */
	uint64_t armed_ns;	      /* since when calls count: all probes are in */
	struct waiting waiting;	      /* for that */
	bool over;		      /* as in struct process, of those that are not known */
	uint64_t allocs, frees;	      /* events written */
	struct tally tally;	      /* the blocks of these */
	struct stack_rest_pace rests; /* of the parts of stacks that no event has */
	uint64_t stacks_cut;	      /* of these allocations, for lack of room in the buffer */
	struct session_memory memory;
	struct session_reach reach;
	struct overrun_list overruns; /* whose stacks are still to come */
	struct code_table codes;      /* functions of interpreted programs */
	uint64_t losses_ns;	      /* when they were counted last */
	struct unrecorded missed;     /* programs started by exec, and children */
	struct unprobed unprobed;     /* allocators that were named */
	uint64_t children;	      /* recorded; without follow: started, and not recorded */
	struct running_children ran;  /* with follow: those that may have run already */
	uint64_t running;	      /* that did, and are not recorded */
	struct session_gaps gaps;
	struct known_programs known;
	struct explained_programs explained;
	struct session_loaded loaded;
	uint64_t attach_ns, detach_ns; /* how long attaching and detaching took */
	bool quiet_told;	       /* that nothing was seen, and why */
	bool gives_back;	       /* madvise gave memory back */
	uint64_t pages_left_out; /* ranges of it of which it is not known whether they are used */
	bool forgets;		 /* processes or programs have ended that the filters know of */
	bool table_full_told;	 /* that there are more processes than can be recorded */
	struct attach_stacks_cost snapshot; /* of the threads at attach */
	struct inject_cost injected;	    /* what putting code there and taking it out took */
	struct refusal refusal;	  /* by the kernel, that the caller is to tell; err 0: none */
	unsigned int batch;	  /* events since probes_consume() was called */
	uint64_t marks;		  /* in all traces */
	bool names_threads;	  /* all, as the probes only count some of them */
	struct choice sites[64];  /* that were chosen last, with their names */
	size_t nr_sites;	  /* ever chosen */
	bool chosen;		  /* something was, in this trace or one before it */
	bool switched;		  /* the trace is not the recording's first */
	struct mlk_losses before; /* what was lost in those before it */
};

/* How to record, as the command line and the backend settled it; borrowed by session_start(). */
struct session_opts {
	struct allocator_opts allocators;
	struct filter_opts filters;
	enum probe_link link;
	uint32_t stack_limit; /* bytes */
	uint32_t ring_size;   /* bytes, a power of two pages; preload: of each thread */
	enum mlk_stack_mode stack_mode;
	enum elf_image_embed embed;
	int zstd_level;
	bool follow;
	bool no_file_names; /* as in struct session */
	bool guard;
	bool force;	  /* the kernel's age does not count */
	bool falls_back;  /* a refusal by the kernel is left in session.refusal, without a word */
	int fd;		  /* of the trace's file, empty */
	const char *path; /* of the trace, for messages */
};

/* Add process @pid to those recorded, before session_start(); the first is the one that the trace
 * is of.  On failure one sentence was logged.  Returns 0 or -errno. */
int session_add_pid(struct session *s, pid_t pid);

/* The same of the @nr of @pids.  Of several, those that have gone are but warned of, unless all. */
int session_add_pids(struct session *s, const pid_t *pids, size_t nr);

/* Before session_start(): the first process is recorded by code that is put into it, with what
 * @opts say.  On failure one sentence was logged.  Returns 0 or -errno. */
int session_open_inject(struct session *s, struct preload_opts *opts);

/* Take out of the processes what a recorder that was killed has put there.  A uprobe at a function
 * that is changed would let its thread go on within the jump.  Logs one sentence on failure, also
 * if a recorder that lives needs it.  Returns 0 or -errno. */
int session_remove_injected(struct session *s);

/* Begin to record the processes added: write what the first one is, and attach the probes.  On
 * failure one sentence was logged. session_release() in any case.  Returns 0 or -errno. */
int session_start(struct session *s, const struct session_opts *opts);

/* From now on ask @helper, which is borrowed, for what needs privileges. */
void session_set_helper(struct session *s, struct helper *helper);

/* Take in what is waiting.  Returns false when much still is; errors go to s->out.err. */
bool session_drain(struct session *s);

/* session_drain() until nothing is waiting, but no longer than @limit_ns: events may come as fast
 * as they are taken. */
void session_drain_for(struct session *s, uint64_t limit_ns);

/* Take in the notices of mappings, names and forks. */
void session_read_sideband(struct session *s);

/* The process whose events of number @pid come from the rings now, or NULL. */
struct process *session_find(struct session *s, pid_t pid);

/* The process that has the number @pid now, or NULL. */
struct process *session_newest(struct session *s, pid_t pid);

/* Add a process without anything.  NULL: no memory, which is noted. */
struct process *session_append(struct session *s);

/* Note that @p has ended; its last events may still be on their way. */
void session_end_process(struct session *s, struct process *p);

/* Take out all probes of @p; there is s->probes. */
void session_drop_probes(struct session *s, struct process *p);

/* Does a program wait for its probes? */
bool session_is_urgent(const struct session *s);
/* Is any process but @p recorded that has not ended? */
bool session_has_others(const struct session *s, const struct process *p);

/* Note that the program that @p runs, or @p itself, could not be recorded, since "it @why",
 * static text. */
void session_note_missed(struct session *s, const struct process *p, const char *why);

/* Note that a process was recorded only from @gap_ns after its start. */
void session_note_gap(struct session *s, uint64_t gap_ns);

/* Has not one event come? */
bool session_is_quiet(const struct session *s);

/* Say why, once. */
void session_explain_quiet(struct session *s);

/* Record all threads from now on. */
void session_record_all_threads(struct session *s);

/* Write what was counted of threads that are not recorded, if it is time or @last. */
void session_write_accounts(struct session *s, bool last);

/* What was chosen, and marks: session_control.c. */

/* As backend.choose(), whether the backend has it or not; what was changed is marked in the trace.
 */
int session_choose(struct session *s, const struct choice *choice, char *why);

/* What the chosen site was called, as "leak" or "0x55d0c0ffee00", into the CHOICE_NAME bytes at
 * @name. */
void session_site_name(const struct session *s, const struct choice_listed *site, char *name);

/* As backend.count_choices(); where the backend has none, all is recorded. */
void session_count_choices(const struct session *s, struct choice_counts *counts);

/* Mark this moment in the trace; @text, "" without one, has at most MLK_MAX_STRING bytes.  Errors
 * go to s->out.err. */
void session_mark(struct session *s, enum mlk_mark_kind kind, const char *text);

/* The memory of processes: sample/.  Errors go to s->out.err. */

/* Sample those that are due at @now_ns, and take what walks through pages have told since the last
 * call.  Returns when it is to be called again. */
uint64_t session_sample_memory(struct session *s, uint64_t now_ns);

/* Sample all: when a trace begins and ends. */
void session_sample_all(struct session *s);

/* Note that @p has ended. */
void session_sample_ended(struct session *s, struct process *p);

/* Write all that @p has mapped, if it is time to. */
void session_sample_regions(struct session *s, struct process *p);

/* Write the names that @p has given to generated code since the last time, if it is time to, or
 * @last. */
void session_sample_names(struct session *s, struct process *p, bool last);

/* Put all samples into the trace, and wait for none. */
void session_flush_memory(struct session *s);

/* The same at the end of the recording, where walks that have begun get a moment; one that takes
 * longer is noted. */
void session_finish_memory(struct session *s);

/* Memory that was given back: given_back_events.c.  Errors go to s->out.err. */

/* @ev goes into the trace: does it give memory back, or take such away? */
void session_note_pages(struct session *s, const struct mlk_event *ev);

/* Put into the trace what @p uses again of what it has given back. */
void session_look_at_pages(struct session *s, struct process *p);

/* The same of all processes, for the last time. */
void session_look_at_all_pages(struct session *s);

/* The pointers in their memory: session_reach.c.  Errors go to s->out.err; what else goes wrong is
 * logged.  Before the start: there are to be snapshots, of so many passes; 0: as pointers move. */
void session_reach_plan(struct session *s, unsigned int passes);

/* Do what takes privileges before they are given up, if s->reach.passes is not 0. */
void session_reach_open(struct session *s);

/* Begin a snapshot of all processes, if none is under way and s->reach.passes is not 0.  Returns
 * whether one is. */
bool session_reach_begin(struct session *s);

/* A descriptor that is readable when the one that is under way goes on. */
int session_reach_fd(const struct session *s);

/* Go on with it.  Returns whether there is more to do. */
bool session_reach_step(struct session *s);

/* Process @pid is held at its end by s->tracer: its memory is read once more, and it is let go. */
void session_reach_at_exit(struct session *s, pid_t pid);

/* @p has ended. */
void session_reach_leave(struct session *s, const struct process *p);

/* End the snapshot that is under way, if there is one. */
void session_reach_end(struct session *s);

/* The same, and no more will be taken. */
void session_reach_close(struct session *s);

/* Put onto the file what has come so far beside the events. */
void session_flush(struct session *s);

/* The trace ends with all that has come, and has @bytes; the recording goes on with another:
 * session_switch.c.  Errors go to s->out.err. */
void session_end_trace(struct session *s, enum mlk_end reason, uint64_t *bytes);

/* Write to @fd, an empty file, from now on.  The trace begins as if the processes were attached to
 * at this moment; @opts is what the session was started with.  Errors go to s->out.err; the writer
 * may be NULL then. */
void session_begin_trace(struct session *s, const struct session_opts *opts, int fd);

/* Open s->out.writer.  Returns as mlk_writer_open(). */
int session_write_meta(struct session *s, const struct session_opts *opts);

/* Take the probes out, take in all that was waiting, and end the trace. */
void session_finish(struct session *s, enum mlk_end reason);

/* Losses of all kinds so far; and those of the trace that is being written. */
void session_losses(const struct session *s, struct mlk_losses *losses);
void session_own_losses(const struct session *s, struct mlk_losses *losses);

/* Take out all probes, and release all but the helper and the tracer. */
void session_release(struct session *s);

/* From the rings' events to the trace's: write_events.c. */

/* An event from the rings, for probes_set_consumer() with the session as context.  Returns 0,
 * -EAGAIN when it is time to check other things, or another -errno, which s->out.err has too.
 */
int write_event(void *ctx, void *data, size_t size);

/* The same for one that a preloaded library made at @time_ns, whatever its kind. */
int write_event_at(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view);

/* @ev, which the recorder knows by itself, goes into the trace. */
void write_own_event(struct session *s, const struct mlk_event *ev);

/* Process @pid was forked by @parent, or has ended, at s->time_ns. */
void write_life(struct session *s, enum mlk_kind kind, pid_t pid, pid_t parent);

/* Take the frees that probes_note_freed() noted.  What goes wrong is in s->out.err. */
void write_deferred_frees(struct session *s);

/* Processes that a preloaded library reports: session_backend.c. */

/* What takes in what happens to them; borrows @s. */
struct preload_sink session_sink(struct session *s);

/* The probes of a process whose main thread has ended: leader.c. */

/* Has the main thread of @p ended, or the thread that took its place? Then make sure that its
 * probes stay.  Where some had gone, it is noted that calls may be missing. */
void leader_follow(struct session *s, struct process *p);

/* leader_follow() of those whose main thread is known to have ended since the last time. */
void leader_look(struct session *s);

/* Processes that are forked by those recorded: children.c. */

/* Once their forks are listened to, note what those to be recorded have started already, if
 * children are to be recorded; and once they are probed, tell of those that are not recorded. */
void children_note_running(struct session *s);
void children_tell_running(struct session *s);

/* A notice says that a thread or process was started. */
void children_on_fork(struct session *s, const struct sideband_fork *fork);

/* The ring says that @parent forked @pid at s->time_ns: its events may come from now on. */
void children_announce(struct session *s, pid_t parent, pid_t pid);

/* @pid is held before its first instruction: attach its probes. */
void children_held(struct session *s, pid_t pid);

/* Attach the probes of those that were not stopped so far, and let those go that are ready. */
void children_look(struct session *s);

/* @p, a child, has ended before its probes were in. */
void children_missed(struct session *s, const struct process *p);

/* Another program in a process under recording: exec.c. */

/* The ring says that @p executed another program at @time_ns; @links_dead: not by its main thread.
 */
void exec_note(struct session *s, struct process *p, uint64_t time_ns, bool links_dead);

/* If the program that @p runs is new to the probes, and its libraries are mapped, make sure that
 * the probes are where it allocates.  On the same files they still are. */
void exec_follow(struct session *s, struct process *p);

/* @pid is held, and begins another program.  Is that to be held again when its libraries are
 * mapped? Not one that allocates by what is probed, as is known of it. */
bool exec_held(struct session *s, pid_t pid);

/* The program that @p runs is held with its libraries mapped: attach its probes. */
void exec_at_start(struct session *s, pid_t pid);

/* No more events of the program come: was it one that could not be examined? */
void exec_judge(struct session *s, struct process *p);

/* The backends' start() and consume(): session_start.c, session_drain.c. */
int session_start_bpf(struct session *s, const struct session_opts *opts);
int session_start_preload(struct session *s, const struct session_opts *opts);
int session_start_inject(struct session *s, const struct session_opts *opts);
void session_stop_inject(struct session *s);

/* Look at all processes.  On failure one sentence was logged.  Returns 0 or -errno. */
int session_prepare_all(struct session *s, const struct session_opts *opts);
int session_start_look(struct session *s, const struct session_opts *opts);
bool session_drain_probes(struct session *s);
bool session_drain_preload(struct session *s);

#endif
