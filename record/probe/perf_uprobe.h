/* perf_uprobe.h - a probe as a perf event of its own, for kernels without uprobe_multi links */
#ifndef RECORD_PERF_UPROBE_H
#define RECORD_PERF_UPROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_uprobe {
	const char *path; /* the file to be probed */
	uint64_t offset;  /* bytes into it */
	uint64_t cookie;
	pid_t tid;	/* the process of this thread is the only one probed */
	bool is_return; /* at the function's returns */
};

/* Put the loaded program @prog_fd on the probe @u.  Returns the link's descriptor, whose closing
 * takes it out, or -errno. */
int perf_uprobe_link(int prog_fd, const struct perf_uprobe *u);

/* Keep the breakpoint of @u in place for others, as long as its thread lives; nothing else comes of
 * it.  Returns a descriptor, whose closing ends that, or -errno. */
int perf_uprobe_keep(const struct perf_uprobe *u);

#endif
