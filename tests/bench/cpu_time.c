/* cpu_time.c - preloaded: at a program's end, its path and CPU time into the file $CPU_TIME
 *
 * So a program's own time can be told from that of who records it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("CPU_TIME");
	struct rusage used;
	char line[4200], exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int fd, n;

	if (!path || len < 0 || getrusage(RUSAGE_SELF, &used))
		return;
	exe[len] = '\0';
	n = snprintf(line, sizeof(line), "%s %.6f\n", exe,
		     (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			     (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (write(fd, line, (size_t)n) != n)
		unlink(path);
	close(fd);
}
