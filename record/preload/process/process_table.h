/* process_table.h - the processes in the slots of the memory shared with a preloaded library, as
 * the recorder knows them, whatever the memory says */
#ifndef RECORD_PROCESS_TABLE_H
#define RECORD_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"

/* Does a process still run the program in which the library started?  Nothing in a program sees an
 * exec by a system call of its own.  But the kernel puts the start of each program's stack
 * elsewhere, and tells where that is. */

#define PRELOAD_WATCH_NS 250000000u /* between looks, in which a new program's library comes up */

/* What was seen of a process; all zero: nothing yet. */
struct exec_detect {
	uint64_t start;		 /* of its program, as it is given to exec_detect_poll() */
	uint32_t program, execs; /* as in struct preload_process */
	bool expected;		 /* the library has reported an exec */
	bool strange;		 /* the program is another, and the library not in it so far */
};

/* The process of slot @s has something at the address @start that is elsewhere in each program; 0:
 * that is not known.  True: it has been running another program than the library reported for a
 * while.
 */
bool exec_detect_poll(struct exec_detect *w, const struct preload_process *s, uint64_t start);

/* What the recorder knows of the process in one slot; it owns the pidfd. */
struct preload_seat {
	pid_t pid; /* 0: none, or not verified yet */
	int pidfd; /* -1: none, because its end was reported */
	bool ended;
	uint32_t maps_answered, maps_changed;
	uint32_t code_told; /* as maps_changed, of generated code */
	uint32_t golang;    /* 1 more than the program that was examined for Go; 0: none yet */
	struct exec_detect watch;
};

/* What is known of each slot, by its number; slot 0 is the command's. */
struct process_table {
	struct preload_seat all[PRELOAD_MAX_PROCESSES];
	uint32_t nr_slots; /* that were ever in use */
	uint32_t nr_alive;
	uint64_t last_end_ns; /* when the last one alive ended, CLOCK_MONOTONIC */
};

/* @t, all zero, has no process. */
void process_table_init(struct process_table *t);

/* Process @pid has @slot now, which was free.  Returns 0 or -errno: -ESRCH where there is no such
 * process, -EMFILE before the last descriptors are taken, except for slot 0, the command's. */
int process_table_add(struct process_table *t, uint32_t slot, pid_t pid);

/* @slot is free now. */
void process_table_forget(struct process_table *t, uint32_t slot);

/* Has @pid a slot, in which it may wait to be reported as ended? */
bool process_table_has(const struct process_table *t, pid_t pid);

/* Find processes that have ended. */
void process_table_poll(struct process_table *t);

/* The process in @slot, which has ended, was reported; it stays there until
 * process_table_forget(). */
void process_table_close(struct process_table *t, uint32_t slot);

/* Close all descriptors. */
void process_table_release(struct process_table *t);

/* A process's place in the memory shared with the library. */

/* Wake all that sleep on @word of the memory. */
void preload_slot_wake(uint32_t *word);

/* Answer the process that waits in @s. */
void preload_slot_answer(struct preload_process *s, enum preload_answer answer);

/* Has @pid, which has been answered, no more use for @s? */
bool preload_slot_is_left(const struct preload_process *s, pid_t pid);

/* The slot is anybody's from now on. */
void preload_slot_clear(struct preload_process *s);

#endif
