/* reach.bpf.c - the registers of a process's threads, none of which is stopped for that
 *
 * Those of a thread that does not run are where it entered the kernel: an iterator of all threads
 * reads them.  One that runs is interrupted by a clock of each CPU, which runs only while memory is
 * read.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel.h"
#include "bpf/pidns.h"
#include "bpf/reach.h"

/* Set by the recorder. */
__u32 wanted;	  /* the process */
__u32 generation; /* of the samples */

/* The last sample of a thread. */
struct sample {
	__u32 generation, filler;
	struct reach_regs at;
};

/* By the thread's number in the initial namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, REACH_SAMPLES);
	__type(key, __u32);
	__type(value, struct sample);
} samples SEC(".maps");

static __always_inline int is_wanted(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	return wanted && number_of(leader) == wanted;
}

/* False: they cannot be read. */
static __always_inline int read_regs(struct reach_regs *to, struct task_struct *task)
{
	struct pt_regs *from = (struct pt_regs *)bpf_task_pt_regs(task), regs;

	if (!from || bpf_probe_read_kernel(&regs, sizeof(regs), from))
		return 0;
	to->tid = number_of(task);
	to->regs[0] = regs.rax;
	to->regs[1] = regs.rdx;
	to->regs[2] = regs.rcx;
	to->regs[3] = regs.rbx;
	to->regs[4] = regs.rsi;
	to->regs[5] = regs.rdi;
	to->regs[6] = regs.rbp;
	to->regs[7] = regs.rsp;
	to->regs[8] = regs.r8;
	to->regs[9] = regs.r9;
	to->regs[10] = regs.r10;
	to->regs[11] = regs.r11;
	to->regs[12] = regs.r12;
	to->regs[13] = regs.r13;
	to->regs[14] = regs.r14;
	to->regs[15] = regs.r15;
	to->regs[16] = regs.rip;
	return 1;
}

/* Tell of the alternate stack for signals: nothing but the kernel may point to it. */
static __always_inline void write_altstack(struct seq_file *seq, struct task_struct *task)
{
	struct reach_regs stack = {.ran = REACH_ALTSTACK};

	stack.regs[0] = BPF_CORE_READ(task, sas_ss_sp);
	if (!stack.regs[0])
		return;
	stack.tid = number_of(task);
	bpf_seq_write(seq, &stack, sizeof(stack));
}

SEC("iter/task")
int each_thread(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct reach_regs regs = {};
	struct sample *sample;
	__u32 pid;

	if (!task || !is_wanted(task))
		return 0;
	write_altstack(seq, task);
	pid = BPF_CORE_READ(task, pid);
	sample = bpf_map_lookup_elem(&samples, &pid);
	if (sample && sample->generation == generation)
		bpf_seq_write(seq, &sample->at, sizeof(sample->at));
	/* where it runs, they are those of its last way into the kernel */
	if (!BPF_CORE_READ(task, on_cpu) && read_regs(&regs, task))
		bpf_seq_write(seq, &regs, sizeof(regs));
	return 0;
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sample sample = {};
	__u32 pid;

	(void)ctx;
	if (!is_wanted(task))
		return 0;
	pid = BPF_CORE_READ(task, pid);
	sample.generation = generation;
	sample.at.ran = 1;
	if (read_regs(&sample.at, task))
		bpf_map_update_elem(&samples, &pid, &sample, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
