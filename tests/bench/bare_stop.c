/* bare_stop.c - stop all threads of a process once and let them go, with nothing done in between
 *
 * usage: bare_stop PID
 * It is what ptrace(2) itself takes here, by a thread that comes before all.  Printed are the
 * milliseconds that a thread was stopped at most, from when it was asked to.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 1024

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int list_threads(const char *pid, pid_t *tids)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	while (dir && nr < THREADS && (entry = readdir(dir)))
		if (atoi(entry->d_name))
			tids[nr++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return nr;
}

int main(int argc, char **argv)
{
	const struct sched_param first = {.sched_priority = 1};
	double asked[THREADS], longest = 0;
	pid_t tids[THREADS];
	int nr = argc == 2 ? list_threads(argv[1], tids) : 0, status;

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		setpriority(PRIO_PROCESS, 0, -20);
	for (int i = 0; i < nr; i++)
		if (ptrace(PTRACE_SEIZE, tids[i], NULL, NULL)) {
			perror("ptrace");
			return 1;
		}
	for (int i = 0; i < nr; i++) {
		asked[i] = now_ms();
		ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL);
	}
	/* when the last one stands, most others do */
	for (int i = nr - 1; i >= 0; i--)
		if (waitpid(tids[i], &status, __WALL) != tids[i])
			return 1;
	for (int i = 0; i < nr; i++) {
		double ms;

		ptrace(PTRACE_DETACH, tids[i], NULL, NULL);
		ms = now_ms() - asked[i];
		longest = ms > longest ? ms : longest;
	}
	printf("%.3f\n", longest);
	return !nr;
}
