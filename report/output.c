/* output.c - see output.h */
#include "report/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <poll.h>

#include "mleak.h"

/* Has the reader at the other end of the pipe or socket gone? */
static bool is_output_closed(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

int output_finish(void)
{
	int err;

	errno = 0;
	if (fflush(stdout) != EOF && !ferror(stdout))
		return EXIT_OK;
	/* if the failed write was an earlier one, errno is lost */
	err = errno ? errno : EIO;
	if (err == EPIPE || is_output_closed())
		return EXIT_OK;
	log_error("cannot write the report: %s", strerror(err));
	return EXIT_FAILED;
}
