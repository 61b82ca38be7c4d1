/* task_regs.h - the registers of a process's threads, by a BPF program: none of them is stopped */
#ifndef RECORD_TASK_REGS_H
#define RECORD_TASK_REGS_H

#include <stddef.h>
#include <sys/types.h>

#include "format/reach.h"

struct reach_roots;
struct task_regs; /* opaque; for one thread at a time */

/* Load the programs, with the privileges that this takes; what follows takes none.  On failure
 * *@out is NULL.  Returns 0 or -errno: eBPF is refused, or the kernel is too old for it. */
int task_regs_open(struct task_regs **out);

/* From now on sample the threads of process @pid while they run, each millisecond; 0: none. */
void task_regs_sample(struct task_regs *r, pid_t pid);

/* List the registers of the threads of process @pid in *@threads, to be freed: of those that wait,
 * and what was sampled since task_regs_sample().  A thread may be there twice, and of one that runs
 * there may be nothing.  Unless @roots is NULL, add their alternate stacks for signals to it.
 * Returns 0, -ENOMEM or -errno of read(2). */
int task_regs_read(struct task_regs *r, pid_t pid, struct mlk_reach_thread **threads, size_t *nr,
		   struct reach_roots *roots);

/* Unload the programs; NULL is allowed. */
void task_regs_close(struct task_regs *r);

#endif
