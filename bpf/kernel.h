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

struct mm_struct {
	unsigned long start_stack; /* the stack pointer at the program's first instruction */
	struct uprobes_state uprobes_state;
};

struct task_struct {
	struct mm_struct *mm;
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
