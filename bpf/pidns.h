/* pidns.h - the numbers of threads and processes in the recorder's pid namespace */
#ifndef MLEAK_BPF_PIDNS_H
#define MLEAK_BPF_PIDNS_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel.h"

#define MAX_PIDNS_LEVEL 32 /* include/linux/pid_namespace.h: MAX_PID_NS_LEVEL */

/* Set by the recorder before the programs are loaded. */
const volatile __u64 pidns_ino; /* its pid namespace; 0: the initial one */

/* The number of @task in the recorder's namespace; 0: it has none there. */
static __always_inline __u32 number_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);

	if (!pidns_ino)
		return BPF_CORE_READ(task, pid);
	for (__u32 i = 0; i < MAX_PIDNS_LEVEL && i <= level; i++) {
		struct upid *at = (void *)((char *)__builtin_preserve_access_index(&pid->numbers) +
					   i * bpf_core_type_size(struct upid));

		if (BPF_CORE_READ(at, ns, ns.inum) == (__u32)pidns_ino)
			return BPF_CORE_READ(at, nr);
	}
	return 0;
}

#endif
