/* preload_left_out.c - see preload_left_out.h */
#include "record/preload/preload_left_out.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "mleak.h"

uint64_t preload_passed_by(const struct preload_header *memory)
{
	const int64_t nr = (int64_t)__atomic_load_n(&memory->passed_by, __ATOMIC_RELAXED);

	return nr > 0 ? (uint64_t)nr : 0; /* anybody may write there */
}

uint64_t preload_calls_not_seen(const struct preload_header *memory)
{
	return __atomic_load_n(&memory->calls_unseen, __ATOMIC_RELAXED);
}

static void tell_confined(const struct preload_header *memory)
{
	uint32_t how = __atomic_load_n(&memory->confined, __ATOMIC_ACQUIRE);

	if (how & PRELOAD_NO_CLOCK)
		log_warn("a recorded process disabled its time stamp counter (with seccomp's "
			 "strict mode, or PR_SET_TSC): its later events count as lost");
	else if (how & PRELOAD_LEFT_OUT)
		log_warn("a recorded process turned on seccomp: events that need system calls, "
			 "such as those of new threads and programs, were not recorded and count "
			 "as lost");
}

static void tell_no_facts(const struct preload_header *memory)
{
	const uint64_t nr = __atomic_load_n(&memory->no_facts, __ATOMIC_RELAXED);

	if (nr)
		log_warn("%" PRIu64 " %s not reach mleak in /proc: what an interpreter executed "
			 "there, and stacks of Go, may be missing",
			 nr, nr == 1 ? "program could" : "programs could");
}

static void tell_ringless(const struct preload_header *memory)
{
	if (__atomic_load_n(&memory->ringless, __ATOMIC_RELAXED))
		log_warn("all %u buffers for threads were taken, so events of more threads are "
			 "lost; record by eBPF, as root",
			 PRELOAD_MAX_RINGS);
}

void preload_tell_left_out(const struct preload_header *memory)
{
	const uint64_t nr = preload_passed_by(memory), unseen = preload_calls_not_seen(memory);

	tell_confined(memory);
	tell_no_facts(memory);
	tell_ringless(memory);
	if (nr)
		log_warn("%" PRIu64 " %s blocks were not recorded: the preloaded library does not "
			 "see them; record by eBPF, as root",
			 nr,
			 nr == 1 ? "program has a malloc of its own, so its"
				 : "programs have a malloc of their own, so their");
	if (unseen)
		log_warn("%" PRIu64 " %s functions that only one allocator has, such as mallocx or "
			 "mi_free, which the preloaded library does not see: blocks of these are "
			 "missing or seem outstanding; record by eBPF, as root",
			 unseen, unseen == 1 ? "program calls" : "programs call");
}

void preload_explain_unlooked(pid_t pid)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	if (info.si_code == CLD_EXITED)
		log_warn("the last blocks of process %d were not checked for overruns: it ended "
			 "with a system call of its own",
			 (int)pid);
	else
		log_warn("the last blocks of process %d were not checked for overruns: it was "
			 "ended by signal %d (%s)",
			 (int)pid, info.si_status, strsignal(info.si_status));
}
