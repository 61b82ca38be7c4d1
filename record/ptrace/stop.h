/* stop.h - stop a process with ptrace(2) while its probes are attached
 *
 * Neither its parent nor a shell's job control sees it: no signal is sent, and nothing is to be
 * waited for but by us.  Should this process end meanwhile, the kernel lets it go.
 */
#ifndef RECORD_STOP_H
#define RECORD_STOP_H

#include <stdbool.h>
#include <sys/types.h>

struct helper;

struct stop {
	bool seized;	       /* we are its tracer, or the helper is, and not rid of it yet */
	bool stopped;	       /* and it has stopped */
	int sig;	       /* that is to be delivered to it when it goes on; 0: none */
	struct helper *helper; /* that traces it; NULL: we do */
};

/* Stop @pid.  It may come to a stop only later (it may wait in the kernel for a child of vfork):
 * this call waits some milliseconds at most.  @helper, which may be NULL, is asked where we are not
 * allowed to.  Returns 0, or -errno: it is gone, or another traces it. */
int stop_begin(struct stop *h, pid_t pid, struct helper *helper);

/* Let @pid go, if it has been stopped by now; else this is to be called again.  Once it is done
 * nothing happens. */
void stop_end(struct stop *h, pid_t pid);

#endif
