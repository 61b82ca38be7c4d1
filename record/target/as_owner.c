/* as_owner.c - see as_owner.h */
#include "record/target/as_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "record/base/proc.h"

#define STATUS_SIZE 8192 /* bytes: more than /proc/PID/status has */

/* User and group by which files are opened. */
struct owner {
	uid_t uid;
	gid_t gid;
};

/* Who this thread was, and whether others may examine this process: each change ends that. */
struct before {
	struct owner owner;
	int dumpable;
};

/* The number in the line @name of /proc/PID/status, if the first three, real, effective and saved,
 * are one. */
static bool read_id(const char *status, const char *name, unsigned int *id)
{
	const char *line = strstr(status, name);
	unsigned int ids[3];

	if (!line || sscanf(line + strlen(name), "%u %u %u", &ids[0], &ids[1], &ids[2]) != 3)
		return false;
	*id = ids[0];
	return ids[0] == ids[1] && ids[0] == ids[2];
}

/* No error is told: the call returns who it was until now, also if that stays so. */
static bool is_now(struct owner o)
{
	return (uid_t)setfsuid((uid_t)-1) == o.uid && (gid_t)setfsgid((gid_t)-1) == o.gid;
}

static void go_back(const struct before *b)
{
	setfsuid(b->owner.uid);
	setfsgid(b->owner.gid);
	/* it is what fs.suid_dumpable says, which may be more or less */
	prctl(PR_SET_DUMPABLE, b->dumpable == 1);
}

/* Become the owner of thread @task, for the kernel's questions of who opens and reads a file. */
static bool become(pid_t task, struct before *b)
{
	char status[STATUS_SIZE];
	struct owner o;

	proc_read(status, sizeof(status), "/proc/%d/status", (int)task);
	if (!read_id(status, "\nUid:", &o.uid) || !read_id(status, "\nGid:", &o.gid))
		return false;
	b->owner = (struct owner){(uid_t)setfsuid((uid_t)-1), (gid_t)setfsgid((gid_t)-1)};
	b->dumpable = prctl(PR_GET_DUMPABLE);
	if (is_now(o))
		return false;
	setfsgid(o.gid); /* while that is allowed */
	setfsuid(o.uid);
	if (is_now(o))
		return true;
	go_back(b);
	return false;
}

int as_owner_open(pid_t task, const char *path, int flags)
{
	struct before before;
	int fd;

	if (!become(task, &before))
		return -EACCES;
	fd = open(path, flags);
	if (fd < 0)
		fd = -errno;
	go_back(&before);
	return fd;
}

ssize_t as_owner_read(pid_t task, const char *path, void *to, size_t len)
{
	struct before before;
	ssize_t n;
	int fd;

	if (!become(task, &before))
		return -EACCES;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, to, len);
	if (n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	go_back(&before);
	return n;
}
