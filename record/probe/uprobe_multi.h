/* uprobe_multi.h - uprobe_multi links by raw bpf(2): libbpf has a call for them only from 1.3 on */
#ifndef RECORD_UPROBE_MULTI_H
#define RECORD_UPROBE_MULTI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* expected_attach_type of a program for such links (enum bpf_attach_type of Linux 6.6) */
#define UPROBE_MULTI_ATTACH_TYPE   48
#define UPROBE_SESSION_ATTACH_TYPE 57 /* for functions' entries and returns, Linux 6.13 */

struct uprobe_multi {
	const char *path;	 /* the file to be probed */
	const uint64_t *offsets; /* bytes into the file, one a probe */
	const uint64_t *cookies; /* one a probe */
	uint32_t nr;
	pid_t pid;	/* the only process probed */
	bool is_return; /* at the functions' returns */
	bool session;	/* at both, by a program for that */
};

/* Put the loaded program @prog_fd on the probes of @u.  Returns the link's descriptor, whose
 * closing takes them out, or -errno. */
int uprobe_multi_link(int prog_fd, const struct uprobe_multi *u);

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
