/* sandbox.c - Landlock by raw system calls: libc has no calls for it, and the headers of Debian 12
 * lack what came after Linux 6.1 */
#include "record/privilege/sandbox.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/writer.h"

/* The same number on all architectures. */
#define CREATE_RULESET 444
#define RESTRICT_SELF  446

#define CREATE_RULESET_VERSION 1u

/* struct landlock_ruleset_attr of Linux 6.12; older kernels read as much as they know. */
struct ruleset {
	uint64_t fs;	 /* LANDLOCK_ACCESS_FS_... */
	uint64_t net;	 /* LANDLOCK_ACCESS_NET_..., from version 4 of its interface on */
	uint64_t scoped; /* LANDLOCK_SCOPE_..., from version 6 on */
};

#define FS_EXECUTE    (1u << 0)
#define FS_WRITE_FILE (1u << 1)
#define FS_CHANGES    0x1ff0u /* bits 4 to 12: remove, and make files of all kinds */
#define FS_REFER      (1u << 13)
#define FS_TRUNCATE   (1u << 14)
#define FS_IOCTL_DEV  (1u << 15)
#define NET_TCP	      3u
#define SCOPE_ALL     3u /* abstract sockets, signals */

/* All of it that version @abi of the interface knows.  Returns the size of the part to hand over.
 */
static size_t fill(struct ruleset *r, long abi)
{
	*r = (struct ruleset){.fs = FS_EXECUTE | FS_WRITE_FILE | FS_CHANGES};
	if (abi >= 2)
		r->fs |= FS_REFER;
	if (abi >= 3)
		r->fs |= FS_TRUNCATE;
	if (abi >= 4)
		r->net = NET_TCP;
	if (abi >= 5)
		r->fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		r->scoped = SCOPE_ALL;
	return abi >= 6 ? sizeof(*r) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

int sandbox_enter(void)
{
	long abi = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset rules;
	int fd, err = 0;

	if (abi < 0)
		return -errno;
	/* no rules: what is named is allowed nowhere */
	fd = (int)syscall(CREATE_RULESET, &rules, fill(&rules, abi), 0);
	if (fd < 0)
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(RESTRICT_SELF, fd, 0))
		err = -errno;
	close(fd);
	return err;
}

static void enter(void *arg)
{
	(void)arg;
	sandbox_enter();
}

int sandbox_enter_both(struct mlk_writer *writer)
{
	mlk_writer_in_thread(writer, enter, NULL);
	return sandbox_enter();
}
