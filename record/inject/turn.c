/* turn.c - see turn.h */
#include "record/inject/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"

#define LIMIT_NS UINT64_C(10000000000)
#define APART_NS 5000000

int inject_turn_take(pid_t pid)
{
	const uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	char path[32];
	int fd;

	/* flock(2) locks a directory of /proc as any other: it is the same for all who open it */
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK || clock_now_ns() > until_ns) {
			int err = errno == EWOULDBLOCK ? -EBUSY : -errno;

			close(fd);
			return err;
		}
		nanosleep(&(struct timespec){.tv_nsec = APART_NS}, NULL);
	}
	return fd;
}
