/* awake.c - see awake.h */
#include "record/ptrace/awake.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* Whoever has it open says how many microseconds an idle processor may take to wake up: see
 * Documentation/power/pm_qos_interface.rst of Linux. */
#define FILE_NAME "/dev/cpu_dma_latency"

int awake_begin(void)
{
	const int32_t most_us = 0;
	int fd = open(FILE_NAME, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, &most_us, sizeof(most_us)) != sizeof(most_us)) {
		close(fd);
		return -1;
	}
	return fd;
}

void awake_end(int fd)
{
	if (fd >= 0)
		close(fd);
}
