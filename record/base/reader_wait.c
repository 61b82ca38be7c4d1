/* reader_wait.c - see reader_wait.h */
#include "record/base/reader_wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "record/base/waiting.h"

#define LOOK_MS 50

bool reader_told_to_end(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGTERM) || sigismember(&set, SIGINT) ||
				     sigismember(&set, SIGQUIT) || sigismember(&set, SIGHUP));
}

int reader_wait(int fd)
{
	struct pollfd pipe = {.fd = fd, .events = POLLOUT};
	struct waiting waiting;
	bool told = false;

	if (poll(&pipe, 1, 0) == 1)
		return 0;
	waiting_begin(&waiting);
	waiting_for(&waiting, READER_WAITED, 0, 0);
	while (!told && poll(&pipe, 1, LOOK_MS) != 1)
		told = reader_told_to_end();
	waiting_end(&waiting);
	return told ? -ECANCELED : 0;
}
