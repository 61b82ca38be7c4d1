/* memory_room.c - see memory_room.h */
#include "record/base/memory_room.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/base/proc.h"

#define TEXT 8192 /* bytes: all of memory.stat, and more */

/* The two versions of control groups: where the tree is, in which line of /proc/PID/cgroup the
 * group of a process, and how the files are called (the kernel's cgroup-v2.rst, and memory.rst of
 * cgroup-v1). */
struct version {
	const char *tree, *line;
	const char *most, *used;
	const char *kept[3]; /* lines of memory.stat: what is given back when there is need */
};

static const struct version versions[] = {
	{"/sys/fs/cgroup",
	 "\n0::/",
	 "memory.max",
	 "memory.current",
	 {"\ninactive_file ", "\nactive_file ", "\nslab_reclaimable "}},
	{"/sys/fs/cgroup/memory",
	 ":memory:/",
	 "memory.limit_in_bytes",
	 "memory.usage_in_bytes",
	 {"\ntotal_inactive_file ", "\ntotal_active_file "}}, /* not told of the kernel's */
};

unsigned long long memory_mib(uint64_t bytes)
{
	return (bytes + (1u << 20) - 1) >> 20;
}

uint64_t memory_value(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	uint64_t value = 0;

	return at && sscanf(at + strlen(name), " %" SCNu64, &value) == 1 ? value : UINT64_MAX;
}

/* Read the file @name of the control group @group into @text, TEXT bytes, behind a line's end. */
static const char *read_group(char *text, const struct version *v, const char *group,
			      const char *name)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s%s/%s", v->tree, group, name) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	text[0] = '\n';
	if (fd >= 0) {
		n = read(fd, text + 1, TEXT - 2);
		close(fd);
	}
	text[1 + (n > 0 ? n : 0)] = '\0';
	return text;
}

static uint64_t room_in(const struct version *v, const char *group)
{
	char text[TEXT];
	const uint64_t most = memory_value(read_group(text, v, group, v->most), "\n");
	uint64_t used = memory_value(read_group(text, v, group, v->used), "\n"), kept = 0;

	if (most == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	read_group(text, v, group, "memory.stat");
	for (int i = 0; i < 3 && v->kept[i]; i++) {
		const uint64_t bytes = memory_value(text, v->kept[i]);

		kept += bytes == UINT64_MAX ? 0 : bytes;
	}
	used -= kept < used ? kept : used;
	return most > used ? most - used : 0;
}

/* In @group, which is within others; it is cut.  In a container the first version's tree may begin
 * with its own group, under another name: then that is the last one that is asked. */
static uint64_t room_within(const struct version *v, char *group)
{
	char *end = group + strcspn(group, "\n");
	uint64_t least = UINT64_MAX;

	for (; end; end = strrchr(group, '/')) {
		uint64_t room;

		*end = '\0';
		room = room_in(v, group);
		least = room < least ? room : least;
	}
	return least;
}

uint64_t memory_room(pid_t pid)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		char text[TEXT] = "\n", *line;
		uint64_t room;

		proc_read(text + 1, sizeof(text) - 1, "/proc/%d/cgroup", (int)pid);
		line = strstr(text, versions[i].line);
		if (!line)
			continue;
		room = room_within(&versions[i], line + strlen(versions[i].line) - 1);
		least = room < least ? room : least;
	}
	return least;
}
