/* process_table.h - the processes in the slots of the memory shared with a preloaded library, as
 * the recorder knows them, whatever the memory says */
#ifndef RECORD_PROCESS_TABLE_H
#define RECORD_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"
#include "record/preload/process/exec_detect.h"

struct preload_seat {
	pid_t pid; /* 0: none, or not verified yet */
	int pidfd; /* -1: none, because its end was reported */
	bool ended;
	uint32_t maps_answered, maps_changed;
	struct exec_detect watch;
};

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

#endif
