/* join.c - see join.h */
#include "record/ptrace/join.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "record/base/proc.h"

#define APART_NS 5000000

/* Has @tid ended?  That it stopped, or went on, is told as well, by whatever options; it is left to
 * the thread that waits for it. */
static bool has_ended(pid_t tid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) &&
	       (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
		info.si_code == CLD_DUMPED);
}

/* Those that are not ours, or live, stay as they are; and so does the process itself, whose end is
 * waited for elsewhere. */
static void reap(pid_t pid, const _Atomic int *seizing)
{
	DIR *dir = proc_threads(pid);
	siginfo_t unused;
	pid_t tid;

	while (dir && (tid = proc_next_thread(dir)) > 0)
		if (tid != pid && (!seizing || *seizing) && has_ended(tid))
			waitid(P_PID, (id_t)tid, &unused, WEXITED | WNOHANG | __WALL);
	if (dir)
		closedir(dir);
}

void join_tracer(pthread_t thread, pid_t pid, const _Atomic int *seizing)
{
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += APART_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		if (!pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
			return;
		if (!seizing || *seizing)
			reap(pid, seizing);
	}
}
