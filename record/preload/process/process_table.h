/* process_table.h - the processes in the slots of the memory shared with a preloaded library, as
 * the recorder knows them, whatever stands there */
#ifndef RECORD_PROCESS_TABLE_H
#define RECORD_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"
#include "record/preload/process/exec_detect.h"

struct preload_seat {
	pid_t pid; /* 0: nobody, or not believed yet */
	int pidfd; /* -1: none, for its end was told of */
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

/* @t, all zero, has nobody. */
void process_table_init(struct process_table *t);

/* Process @pid has @slot now, which nobody had.  Returns 0 or -errno: -ESRCH where there is no such
 * process, -EMFILE before the last descriptors are taken, but for slot 0, the command's. */
int process_table_add(struct process_table *t, uint32_t slot, pid_t pid);

/* Nobody has @slot now. */
void process_table_forget(struct process_table *t, uint32_t slot);

/* Has @pid a slot, in which it may wait to be told of as ended? */
bool process_table_has(const struct process_table *t, pid_t pid);

/* See who has ended. */
void process_table_poll(struct process_table *t);

/* Who has @slot, and has ended, was told of; it stays there until process_table_forget(). */
void process_table_close(struct process_table *t, uint32_t slot);

/* Close all descriptors. */
void process_table_release(struct process_table *t);

#endif
