/* probes_explain.c - what users are told when probes could not be put in */
#include "record/probes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf/event.h"
#include "mleak.h"
#include "record/privileges.h"

void probes_explain(const struct target *t, int err, bool perf)
{
	if ((err == -EPERM || err == -EACCES) && t->helper)
		log_error("cannot probe process %d: the kernel refuses it, or it is no child of a "
			  "recorded process any more",
			  (int)t->pid);
	else if (err == -EPERM || err == -EACCES)
		privileges_explain_bpf(t->pid, perf);
	else if (err == -E2BIG)
		log_error("cannot record process %d, nor others that come: %d processes are "
			  "recorded already, and more cannot be at once",
			  (int)t->pid, EVENT_MAX_TARGETS);
	else if (err == -ESRCH)
		log_error("cannot probe process %d: it has ended", (int)t->pid);
	else if (access("/sys/kernel/btf/vmlinux", R_OK))
		log_error(
			"cannot probe process %d: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), "
			"which mleak's BPF programs need",
			(int)t->pid);
	else
		log_error("cannot probe process %d: the kernel refused the BPF programs or probes "
			  "(%s); "
			  "MLEAK_LIBBPF_LOG=1 in the environment shows libbpf's account",
			  (int)t->pid, strerror(-err));
}
