/* uprobe_multi.c - BPF_LINK_CREATE as include/uapi/linux/bpf.h of Linux 6.6 defines it */
#include "record/probe/uprobe_multi.h"

#include <errno.h>
#include <linux/bpf.h>
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
