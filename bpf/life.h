/* life.h - what happens to recorded processes: exec, fork, exit, and signals
 *
 * The kernel reports these for all processes; for one that is not recorded, they cost a lookup in a
 * table.
 */
#ifndef MLEAK_BPF_LIFE_H
#define MLEAK_BPF_LIFE_H

#include "bpf/calls.h"
#include "bpf/pidns.h"
#include "bpf/send.h"
#include "bpf/state.h"

/* include/linux/sched/signal.h: SIGNAL_GROUP_EXIT, and SIGNAL_GROUP_COREDUMP up to Linux 5.16: all
 * threads are on their way out */
#define SIGNAL_GROUP_ENDS 0xcu

/* The number of the process @task in the recorder's namespace; 0: it has none there. */
static __always_inline __u32 tgid_of(struct task_struct *task)
{
	return pidns_ino ? number_of(task) : BPF_CORE_READ(task, tgid);
}

/* Arguments: the task, its thread id before (another when it was not the main thread), the program.
 */
SEC("raw_tp/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 id = current_id(), self = bpf_get_current_pid_tgid();
	struct event_code *code = id ? code_of(id) : 0;
	struct thread_state *st;

	if (!code)
		return 0;
	code->stale = 1;
	forget_interpreter(id);
	filter_over(id, 1);
	st = placed_state();
	send_freed(st, FREED_SENT);
	if (st)
		forget_thread(st);
	if (send_life(EVENT_EXEC, id, 0, (__u32)ctx->args[1] != (__u32)self))
		count(&drops.exec);
	return 0;
}

/* Arguments: the task that forks, which runs, and the new one, which does not yet.  A process that
 * is to be followed is recorded from its first instruction on, by what is known of its parent. */
SEC("raw_tp/sched_process_fork")
int process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	const struct event_code *code;
	__u64 id;
	__u32 tgid;
	int shared;

	shared = BPF_CORE_READ(parent, mm) == BPF_CORE_READ(child, mm);
	send_freed(placed_state(), shared ? FREED_SENT : FREED_NONE);
	if (!follow || BPF_CORE_READ(parent, tgid) == BPF_CORE_READ(child, tgid))
		return 0; /* a thread */
	id = current_id();
	code = id ? code_of(id) : 0;
	tgid = code ? tgid_of(child) : 0;
	if (!tgid)
		return 0;
	if (bpf_map_update_elem(&targets, &tgid, code, BPF_ANY) ||
	    send_life(EVENT_FORK, id, tgid, shared))
		count(&drops.fork);
	inherit_interpreter(id, tgid);
	filter_fork(tgid);
	return 0;
}

/* The thread @task ends before its process.  If it is the main one, by which the kernel knows whom
 * the probes are for, the recorder has to see to them. */
static __always_inline void tell_of_leader(struct task_struct *task)
{
	__u64 id;

	if (BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid) ||
	    BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_ENDS)
		return;
	id = current_id();
	if (id && code_of(id) && send_life(EVENT_EXIT, id, 0, 1))
		count(&drops.exit);
}

/* Arguments: the task, which runs.  Its process ends with its last thread; of several that end at
 * once, one finds it in the table. */
SEC("raw_tp/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u64 id;
	__u32 tgid;

	send_freed(placed_state(), FREED_SENT);
	leave_slot();
	id = filter.on ? current_id() : 0;
	if (id && code_of(id))
		filter_end_thread(id);
	if (BPF_CORE_READ(task, signal, live.counter)) {
		tell_of_leader(task);
		return 0;
	}
	id = current_id();
	tgid = event_tgid(id);
	if (!id || bpf_map_delete_elem(&targets, &tgid))
		return 0;
	forget_interpreter(id);
	filter_over(id, 0);
	if (send_life(EVENT_EXIT, id, 0, 0))
		count(&drops.exit);
	return 0;
}

/* A signal's handler is about to run: it may leave for good the call that it interrupts. */
SEC("raw_tp/signal_deliver")
int process_signal(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread_state *st = placed_state();

	(void)ctx;
	if (!st || !is_call(&st->now))
		return 0;
	if (!(st->now.sp & CALL_SPECIAL))
		st->now.func = FUNC_MALLOC;
	st->now.func |= CALL_INTERRUPTED;
	st->now.sp |= CALL_SPECIAL;
	return 0;
}

#endif
