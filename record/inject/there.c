/* there.c - see there.h */
#include "record/inject/there.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/inject/inject.h"

/* MFD_NOEXEC_SEAL of Linux 6.3 (linux/memfd.h), which allows seals, too. */
#define NOEXEC_SEAL 8u

int64_t there_call(struct remote *r, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		   int64_t fd, uint64_t offset)
{
	const uint64_t args[6] = {a, b, c, d, (uint64_t)fd, offset};
	int64_t result;
	int err = remote_call(r, nr, args, &result);

	return err ? err : result;
}

void there_explain(char *why, const char *what, int err)
{
	if (err == -EMFILE)
		give_reason(why, "has as many files open as it may (ulimit -n)");
	else if (err == -EAGAIN)
		give_reason(why, "has all its memory locked (mlockall), and may lock no more "
				 "(ulimit -l)");
	else if (err == -ENOMEM)
		give_reason(why, "may not have the memory: a limit (ulimit -v, "
				 "vm.max_map_count) or vm.overcommit_memory is in the way");
	else if (err == -EACCES || err == -EPERM)
		give_reason(why, "may not map code: a security module (as SELinux) forbids it");
	else if (err == -EFAULT)
		give_reason(why, "has system calls dispatched to itself");
	else if (err == -EBADF)
		give_reason(why, "has closed what was put there: it begins another program, or "
				 "closes all files");
	else
		give_failure(why, what, err);
}

int there_make_file(struct remote *r, const char *name, struct inject_file *f)
{
	char path[64];
	uint64_t at;
	int err = remote_put(r, name, strlen(name) + 1, &at);

	if (err)
		return err;
	/* no program that could be begun: such may be forbidden (vm.memfd_noexec) */
	f->there = there_call(r, SYS_memfd_create, at, MFD_CLOEXEC | NOEXEC_SEAL, 0, 0, 0, 0);
	if (f->there == -EINVAL)
		f->there = there_call(r, SYS_memfd_create, at, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0,
				      0, 0, 0);
	if (f->there < 0)
		return (int)f->there;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)living_thread(r->pid), (int)f->there);
	f->fd = open(path, O_RDWR | O_CLOEXEC);
	return f->fd < 0 ? -errno : 0;
}
