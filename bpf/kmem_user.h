/* kmem_user.h - the stack of the program on whose behalf the kernel allocates
 *
 * Included by kmem.bpf.c only.  A copy is kept until the recorder has written its block, or the
 * block is freed.  There are few places for copies, each for some blocks by their addresses.
 */
#ifndef MLEAK_BPF_KMEM_USER_H
#define MLEAK_BPF_KMEM_USER_H

#include "bpf/kmem_stack.h"
#include "bpf/kmem_state.h"

/* The memory of a program; of the running kernel, by CO-RE. */
struct mm_struct {
	unsigned long start_stack, end_code;
} __attribute__((preserve_access_index));

/* A thread; the same. */
struct task_struct {
	struct mm_struct *mm;
} __attribute__((preserve_access_index));

const volatile __u32 user_stacks; /* they are asked for */
__s32 users_taken;		  /* places in use */

/* The copies. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KMEM_USERS); /* the recorder makes it small where none are asked for */
	__type(key, __u32);
	__type(value, struct kmem_user);
} users SEC(".maps");

/* Place @n of those for the block at @addr. */
static __always_inline struct kmem_user *user_at(__u64 addr, __u32 n)
{
	__u32 at = KMEM_USER_AT(addr, n);

	return bpf_map_lookup_elem(&users, &at);
}

/* The block at @addr is freed, or written anew: forget its copy. */
static __noinline int drop_user(__u64 addr)
{
	for (__u32 n = 0; n < KMEM_USER_PLACES; n++) {
		struct kmem_user *u = user_at(addr, n);

		if (u && u->addr == addr && __sync_val_compare_and_swap(&u->addr, addr, 0) == addr)
			__sync_fetch_and_add(&users_taken, -1);
	}
	return 0;
}

/* The registers of user space.  False: the task was not there. */
static __always_inline int copy_regs(struct kmem_user *u)
{
	return !bpf_probe_read_kernel(u->regs, sizeof(u->regs),
				      (void *)bpf_task_pt_regs(bpf_get_current_task_btf())) &&
	       (u->regs[KMEM_REGS_CS] & 3) == 3;
}

/* Pages that a process takes by touching its memory are many: they leave room for system calls,
 * which put the address of the next instruction into rcx. */
static __always_inline int has_room(const struct kmem_user *u)
{
	return users_taken < KMEM_USERS / 2 || u->regs[KMEM_REGS_CX] == u->regs[KMEM_REGS_PC];
}

/* Copy the stack from the stack pointer to the end of the page behind its own.  False: it cannot
 * be read. */
static __always_inline int copy_stack(struct kmem_user *u)
{
	__u64 sp = u->regs[KMEM_REGS_SP];
	__u32 at = (__u32)sp & (PAGE_SIZE - 1);

	if (bpf_probe_read_user(u->stack + at, PAGE_SIZE - at, (void *)sp))
		return 0;
	u->len = (__u32)PAGE_SIZE - at;
	if (!bpf_probe_read_user(u->stack + PAGE_SIZE, PAGE_SIZE, (void *)(sp + u->len)))
		u->len += PAGE_SIZE;
	return 1;
}

/* Keep what there is of user space for the block at @addr, which is allocated at @time_ns. */
static __noinline int take_user(__u64 addr, __u64 time_ns)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct kmem_user *u = 0;

	if (!mm)
		return 0; /* a thread of the kernel's */
	for (__u32 n = 0; n < KMEM_USER_PLACES; n++) {
		u = user_at(addr, n);
		if (u && !u->addr && !__sync_val_compare_and_swap(&u->addr, 0, KMEM_FILLED))
			break;
		u = 0;
	}
	if (!u) {
		count(KMEM_LOST_USER, 1);
		return 0;
	}
	u->time_ns = time_ns;
	u->image[0] = BPF_CORE_READ(mm, start_stack);
	u->image[1] = BPF_CORE_READ(mm, end_code);
	if (!copy_regs(u)) {
		addr = 0;
	} else if (!has_room(u)) {
		count(KMEM_LOST_USER, 1);
		addr = 0;
	} else if (!copy_stack(u)) {
		count(KMEM_UNREAD_USER, 1);
		addr = 0;
	} else {
		__sync_fetch_and_add(&users_taken, 1);
	}
	barrier();
	*(volatile __u64 *)&u->addr = addr;
	return 0;
}

#endif
