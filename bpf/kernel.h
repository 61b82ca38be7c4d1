/* kernel.h - the few kernel structures that the BPF programs look into
 *
 * Only the fields used; libbpf relocates them for the running kernel (CO-RE), so the build needs no
 * BTF of any kernel.
 */
#ifndef MLEAK_BPF_KERNEL_H
#define MLEAK_BPF_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Where the kernel executes probed instructions out of line, in a process with probes. */
struct xol_area {
	unsigned long vaddr; /* the page of the kernel's in which return probes return */
};

/* What a process's memory has for probes; xol_area: NULL until it is needed. */
struct uprobes_state {
	struct xol_area *xol_area;
};

/* The kernel's counter that several CPUs change; it is only read here. */
typedef struct {
	int counter;
} atomic_t;

/* The memory of a process, which all its threads share. */
struct mm_struct {
	atomic_t mm_users;	   /* threads that run in it, and processes that read it just now */
	unsigned long start_stack; /* the stack pointer at the program's first instruction */
	struct uprobes_state uprobes_state;
};

/* What namespaces of all kinds begin with. */
struct ns_common {
	unsigned int inum; /* the inode of the namespace's file */
};

/* A namespace in which processes have numbers of their own. */
struct pid_namespace {
	struct ns_common ns;
};

/* The number of a task in one namespace. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* All numbers of a task, one for each namespace from the initial one to its own. */
struct pid {
	unsigned int level; /* of the innermost namespace; the initial one has 0 */
	struct upid numbers[1];
};

/* What the threads of a process have in common. */
struct signal_struct {
	atomic_t live;	    /* threads of the process that have not ended */
	unsigned int flags; /* SIGNAL_... */
};

/* The part of a task that is the processor's: here of x86-64. */
struct thread_struct {
	unsigned long fsbase; /* where fs: points to, as last set by a system call or saved */
};

/* A thread, numbered as in the initial namespace: there pid is the thread, tgid the process. */
struct task_struct {
	struct mm_struct *mm;
	int pid, tgid;
	int on_cpu; /* it runs just now */
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct thread_struct thread;
	unsigned long sas_ss_sp, sas_ss_size; /* the alternate stack for signal handlers */
};

/* One mapping, [vm_start, vm_end); vm_file: NULL unless it is of a file. */
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct file *vm_file;
};

/* What an iterator's program is called with; task: NULL at the end. */
struct bpf_iter_meta {
	struct seq_file *seq;
};

/* The context of such a program, of tasks. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* To ask whether the kernel has a helper: its number in its own enum bpf_func_id. */
enum bpf_func_id___mleak {
	BPF_FUNC_find_vma___mleak = 180,
};

#endif
