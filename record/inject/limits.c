/* limits.c - see limits.h */
#include "record/inject/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/base/proc.h"
#include "record/inject/inject.h"

#define CGROUPS "/sys/fs/cgroup" /* of version 2 */
#define PAGE	UINT64_C(4096)
#define TEXT	8192 /* bytes: all of memory.stat, and more */

static unsigned long long in_mib(uint64_t bytes)
{
	return (bytes + (1u << 20) - 1) >> 20;
}

/* The number behind @name in @text; UINT64_MAX: there is none, or no limit. */
static uint64_t value_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	uint64_t value = 0;

	return at && sscanf(at + strlen(name), " %" SCNu64, &value) == 1 ? value : UINT64_MAX;
}

/* A limit of a process, and what counts to it. */
struct limit {
	const char *name, *called; /* in /proc/PID/limits, and by the shell */
	uint64_t used, needed;
};

static int check_limit(const char *limits, const struct limit *l, char *why)
{
	const uint64_t most = value_of(limits, l->name);
	const uint64_t left = most > l->used ? most - l->used : 0;

	if (most == UINT64_MAX || l->needed <= left / 2)
		return 0;
	snprintf(why, INJECT_WHY,
		 "may have only %llu MiB more by its limit (ulimit %s), of which it is to keep a "
		 "half; the recorder needs %llu MiB: give a smaller --ring-size",
		 in_mib(left), l->called, in_mib(l->needed));
	return -ENOMEM;
}

static int check_limits(pid_t pid, const struct inject_needs *needs, char *why)
{
	struct limit space = {"Max address space", "-v", 0, needs->bytes};
	struct limit data = {"Max data size", "-d", 0, needs->own_bytes};
	char limits[TEXT], statm[256];
	int err;

	proc_read(limits, sizeof(limits), "/proc/%d/limits", (int)pid);
	proc_read(statm, sizeof(statm), "/proc/%d/statm", (int)pid);
	if (sscanf(statm, "%" SCNu64 " %*u %*u %*u %*u %" SCNu64, &space.used, &data.used) != 2)
		return 0; /* it has ended */
	space.used *= PAGE;
	data.used *= PAGE;
	err = check_limit(limits, &space, why);
	return err ? err : check_limit(limits, &data, why);
}

/* Read the file @name of the control group @group into @text, TEXT bytes. */
static const char *read_group(char *text, const char *group, const char *name)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd = -1;

	if (snprintf(path, sizeof(path), CGROUPS "%s/%s", group, name) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, TEXT - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* How many bytes more the control group @group may have; what is kept of files is given back. */
static uint64_t room_in(const char *group)
{
	char text[TEXT];
	const uint64_t most = value_of(read_group(text, group, "memory.max"), "");
	uint64_t used = value_of(read_group(text, group, "memory.current"), ""), files = 0;

	if (most == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	read_group(text, group, "memory.stat");
	for (int i = 0; i < 2; i++) {
		const uint64_t bytes = value_of(text, i ? "\nactive_file " : "\ninactive_file ");

		files += bytes == UINT64_MAX ? 0 : bytes;
	}
	used -= files < used ? files : used;
	return most > used ? most - used : 0;
}

/* The same of process @pid, whose group is within others. */
static uint64_t room_of(pid_t pid)
{
	char text[TEXT] = "\n", *group, *end;
	uint64_t least = UINT64_MAX;

	proc_read(text + 1, sizeof(text) - 1, "/proc/%d/cgroup", (int)pid);
	group = strstr(text, "\n0::/");
	if (!group)
		return UINT64_MAX;
	end = strchr(group + 1, '\n');
	for (group += 4; end; end = strrchr(group, '/')) {
		uint64_t room;

		*end = '\0';
		room = room_in(group);
		least = room < least ? room : least;
	}
	return least;
}

static int check_group(pid_t pid, const struct inject_needs *needs, char *why)
{
	enum { NUM_THREADS = 20 }; /* the field */
	char text[1024];
	const unsigned long threads =
		strtoul(proc_stat(text, sizeof(text), pid, pid, NUM_THREADS), NULL, 10);
	const uint32_t rings =
		threads < needs->rings->nr_rings ? (uint32_t)threads : needs->rings->nr_rings;
	const uint64_t needed = preload_ring_offset(needs->rings, rings), room = room_of(pid);

	if (needed <= room)
		return 0;
	snprintf(why, INJECT_WHY,
		 "may have only %llu MiB more by its control group, and the buffers of its %lu "
		 "%s take %llu MiB: give a smaller --ring-size",
		 in_mib(room), threads, threads == 1 ? "thread" : "threads", in_mib(needed));
	return -ENOMEM;
}

int inject_check_limits(pid_t pid, const struct inject_needs *needs, char *why)
{
	const pid_t tid = living_thread(pid);
	int err = check_limits(tid, needs, why);

	return err ? err : check_group(tid, needs, why);
}
