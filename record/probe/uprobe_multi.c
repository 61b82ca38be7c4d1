/* uprobe_multi.c - BPF_LINK_CREATE as include/uapi/linux/bpf.h of Linux 6.6 defines it */
#include "record/probe/uprobe_multi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPROBE_MULTI_RETURN 1u /* BPF_F_UPROBE_MULTI_RETURN */

/* The part of union bpf_attr that is read for such a link. */
struct link_create {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t nr, multi_flags, pid, pad;
};

int uprobe_multi_link(int prog_fd, const struct uprobe_multi *u)
{
	struct link_create attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = u->session ? UPROBE_SESSION_ATTACH_TYPE : UPROBE_MULTI_ATTACH_TYPE,
		.path = (uintptr_t)u->path,
		.offsets = (uintptr_t)u->offsets,
		.cookies = (uintptr_t)u->cookies,
		.nr = u->nr,
		.multi_flags = u->is_return ? UPROBE_MULTI_RETURN : 0,
		.pid = (uint32_t)u->pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

#define PMU "/sys/bus/event_source/devices/uprobe/"

/* The number after @format ("%d", "config:%d") in the one line of the file @path; negative: none.
 */
static int read_number(const char *path, const char *format)
{
	FILE *f = fopen(path, "re");
	int number = -1;

	if (!f)
		return -1;
	if (fscanf(f, format, &number) != 1)
		number = -1;
	fclose(f);
	return number;
}

/* @disabled: the breakpoint is there, but nothing is done about it. */
static int open_event(const struct perf_uprobe *u, bool disabled)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = disabled};
	int type = read_number(PMU "type", "%d");
	int bit = read_number(PMU "format/retprobe", "config:%d");
	long fd;

	if (type < 0 || bit < 0)
		return -EOPNOTSUPP;
	attr.type = (uint32_t)type;
	attr.config = u->is_return ? 1ull << bit : 0;
	attr.config1 = (uintptr_t)u->path;
	attr.config2 = u->offset;
	fd = syscall(SYS_perf_event_open, &attr, u->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_uprobe_link(int prog_fd, const struct perf_uprobe *u)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = u->cookie);
	int event = open_event(u, false), link;

	if (event < 0)
		return event;
	link = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &opts);
	if (link >= 0 && ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		int err = -errno;

		close(link);
		link = err;
	}
	close(event); /* the link holds it */
	return link;
}

int perf_uprobe_keep(const struct perf_uprobe *u)
{
	return open_event(u, true);
}
