/* limits.c - see limits.h */
#include "record/inject/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/base/living.h"
#include "record/base/memory_room.h"
#include "record/base/proc.h"
#include "record/inject/inject.h"

#define PAGE UINT64_C(4096)
#define TEXT 8192 /* bytes: all of /proc/PID/limits, and more */

/* A limit of a process, and what counts to it. */
struct limit {
	const char *name, *called; /* in /proc/PID/limits, and by the shell */
	uint64_t used, needed;
};

static int check_limit(const char *limits, const struct limit *l, char *why)
{
	const uint64_t most = memory_value(limits, l->name);
	const uint64_t left = most > l->used ? most - l->used : 0;

	if (most == UINT64_MAX || l->needed <= left / 2)
		return 0;
	snprintf(why, INJECT_WHY,
		 "may have only %llu MiB more by its limit (ulimit %s), of which it is to keep a "
		 "half; the recorder needs %llu MiB: give a smaller --ring-size",
		 memory_mib(left), l->called, memory_mib(l->needed));
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

static int check_group(pid_t pid, const struct inject_needs *needs, char *why)
{
	enum { NUM_THREADS = 20 }; /* the field */
	char text[1024];
	const unsigned long threads =
		strtoul(proc_stat(text, sizeof(text), pid, pid, NUM_THREADS), NULL, 10);
	const uint32_t rings =
		threads < needs->rings->nr_rings ? (uint32_t)threads : needs->rings->nr_rings;
	const uint64_t needed = preload_ring_offset(needs->rings, rings), room = memory_room(pid);

	if (needed <= room)
		return 0;
	snprintf(why, INJECT_WHY,
		 "may have only %llu MiB more by its control group, and the buffers of its %lu "
		 "%s take %llu MiB: give a smaller --ring-size",
		 memory_mib(room), threads, threads == 1 ? "thread" : "threads",
		 memory_mib(needed));
	return -ENOMEM;
}

int inject_check_limits(pid_t pid, const struct inject_needs *needs, char *why)
{
	const pid_t tid = living_thread(pid);
	int err = check_limits(tid, needs, why);

	return err ? err : check_group(tid, needs, why);
}
