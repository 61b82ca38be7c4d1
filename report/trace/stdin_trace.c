/* stdin_trace.c - see stdin_trace.h
 *
 * A trace is read more than once, and by several threads: a pipe cannot be.
 */
#include "report/trace/stdin_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPIED_AT_ONCE 65536

/* A file without a name. */
static int make_file(void)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	int fd;

	folder = folder && *folder ? folder : "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if ((size_t)snprintf(path, sizeof(path), "%s/mleak-XXXXXX", folder) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC); /* there are file systems that cannot do the former */
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int copy_to(int fd)
{
	uint8_t *bytes = malloc(COPIED_AT_ONCE);
	int err = bytes ? 0 : -ENOMEM;
	bool any = false;

	while (!err) {
		ssize_t n = read(STDIN_FILENO, bytes, COPIED_AT_ONCE);

		if (!n)
			break;
		if (n > 0)
			err = write_all(fd, bytes, (size_t)n);
		else if (errno != EINTR)
			err = -errno;
		any |= n > 0;
	}
	free(bytes);
	return err || any ? err : -ENODATA;
}

static void ignore_once(int signal_number)
{
	(void)signal_number;
}

int stdin_trace_open(int *fd)
{
	struct sigaction once = {.sa_handler = ignore_once, .sa_flags = (int)SA_RESETHAND}, before;
	struct stat st;
	int err;

	*fd = -1;
	if (isatty(STDIN_FILENO))
		return -ENOTTY;
	if (fstat(STDIN_FILENO, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	*fd = S_ISREG(st.st_mode) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : make_file();
	if (*fd < 0)
		return S_ISREG(st.st_mode) ? -errno : *fd;
	if (S_ISREG(st.st_mode))
		return 0;
	/* ^C ends the recorder in the same pipeline, whose trace is wanted then */
	sigaction(SIGINT, &once, &before);
	err = copy_to(*fd);
	sigaction(SIGINT, &before, NULL);
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}
