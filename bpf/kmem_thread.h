/* kmem_thread.h - whose allocations are recorded
 *
 * Included by kmem.bpf.c only.
 */
#ifndef MLEAK_BPF_KMEM_THREAD_H
#define MLEAK_BPF_KMEM_THREAD_H

#include "bpf/kmem_stack.h"
#include "bpf/kmem_state.h"

/* Is @name the only one that is asked for? */
static __always_inline int is_comm(const char *name)
{
	for (int i = 0; i < KMEM_COMM; i++) {
		if (name[i] != comm[i])
			return 0;
		if (!name[i])
			break;
	}
	return 1;
}

/* Is the block of a thread that is wanted?  False was counted. */
static __always_inline int is_of_wanted(void *ctx, __u64 size)
{
	int own = bpf_get_current_pid_tgid() >> 32 == own_tgid;
	int filtered = only_cgroup && bpf_get_current_cgroup_id() != cgroup;
	char name[KMEM_COMM];

	if (only_comm) {
		bpf_get_current_comm(name, sizeof(name));
		filtered |= !is_comm(name);
	}
	/* Interrupts have a stack of their own, and nothing to do with the thread. */
	if ((own || only_comm || only_cgroup) && !is_on_stack(ctx)) {
		filtered = only_comm || only_cgroup;
		own = 0;
	}
	if (own)
		count_block(KMEM_OWN, size);
	else if (filtered)
		count_block(KMEM_FILTERED, size);
	return !own && !filtered;
}

#endif
