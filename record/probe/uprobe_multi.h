/* uprobe_multi.h - uprobe_multi links by raw bpf(2): libbpf has a call for them only from 1.3 on */
#ifndef RECORD_UPROBE_MULTI_H
#define RECORD_UPROBE_MULTI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* expected_attach_type of a program for such links (enum bpf_attach_type of Linux 6.6) */
#define UPROBE_MULTI_ATTACH_TYPE   48
#define UPROBE_SESSION_ATTACH_TYPE 57 /* for functions' entries and returns, Linux 6.13 */

/* Probes of one link, all in one file and one process; the arrays are borrowed. */
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

#endif
