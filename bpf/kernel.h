/* kernel.h - the few kernel structures that the BPF programs look into
 *
 * Only the fields used; libbpf relocates them for the running kernel (CO-RE), so the build needs no
 * BTF of any kernel.
 */
#ifndef MLEAK_BPF_KERNEL_H
#define MLEAK_BPF_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct xol_area {
	unsigned long vaddr; /* the page of the kernel's in which return probes return */
};

struct uprobes_state {
	struct xol_area *xol_area;
};

typedef struct {
	int counter;
} atomic_t;

struct mm_struct {
	atomic_t mm_users;	   /* threads that run in it, and processes that read it just now */
	unsigned long start_stack; /* the stack pointer at the program's first instruction */
	struct uprobes_state uprobes_state;
};

struct ns_common {
	unsigned int inum; /* the inode of the namespace's file */
};

struct pid_namespace {
	struct ns_common ns;
};

/* The number of a task in one namespace. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level; /* of the innermost namespace; the initial one has 0 */
	struct upid numbers[1];
};

struct signal_struct {
	atomic_t live;	    /* threads of the process that have not ended */
	unsigned int flags; /* SIGNAL_... */
};

struct thread_struct {
	unsigned long fsbase; /* where fs: points to, as last set by a system call or saved */
};

struct task_struct {
	struct mm_struct *mm;
	int pid, tgid;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct thread_struct thread;
	unsigned long sas_ss_sp, sas_ss_size; /* the alternate stack for signal handlers */
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct file *vm_file;
};

#pragma clang attribute pop

/* To ask whether the kernel has a helper: its number in its own enum bpf_func_id. */
enum bpf_func_id___mleak {
	BPF_FUNC_find_vma___mleak = 180,
};

#endif
