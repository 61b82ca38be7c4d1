/* memory_read.c - see memory_read.h */
#include "record/target/memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/base/clock.h"

/* Bytes: more than any of the files has, unless a user has 6,000 groups. */
#define TEXT_SIZE 65536

/* A line "Name:   123 kB", and where its number belongs. */
struct line {
	const char *name; /* with the colon */
	enum mlk_memory_value value;
};

static const struct line of_status[] = {
	{"VmSize:", MLK_MEMORY_MAPPED},	    {"VmRSS:", MLK_MEMORY_RSS},
	{"RssAnon:", MLK_MEMORY_ANON},	    {"RssFile:", MLK_MEMORY_FILE},
	{"RssShmem:", MLK_MEMORY_SHMEM},    {"VmSwap:", MLK_MEMORY_SWAP},
	{"VmPTE:", MLK_MEMORY_PAGE_TABLES}, {"VmHWM:", MLK_MEMORY_PEAK},
};

static const struct line of_rollup[] = {
	{"Pss:", MLK_MEMORY_PSS},
	{"LazyFree:", MLK_MEMORY_LAZY_FREE},
	{"AnonHugePages:", MLK_MEMORY_HUGE},
};

static const struct line of_meminfo[] = {
	{"MemTotal:", MLK_MEMORY_TOTAL},
	{"MemFree:", MLK_MEMORY_FREE},
	{"MemAvailable:", MLK_MEMORY_AVAILABLE},
	{"Cached:", MLK_MEMORY_CACHED},
	{"AnonPages:", MLK_MEMORY_ANON},
	{"Mapped:", MLK_MEMORY_FILE},
	{"Shmem:", MLK_MEMORY_SHMEM},
	{"PageTables:", MLK_MEMORY_PAGE_TABLES},
	{"AnonHugePages:", MLK_MEMORY_HUGE},
	{"SReclaimable:", MLK_MEMORY_SLAB_RECLAIM},
	{"SUnreclaim:", MLK_MEMORY_SLAB_KEPT},
	{"KernelStack:", MLK_MEMORY_KERNEL_STACKS},
	{"VmallocUsed:", MLK_MEMORY_VMALLOC},
	{"Percpu:", MLK_MEMORY_PERCPU},
};

#define NR(lines) (sizeof(lines) / sizeof((lines)[0]))

/* Read @fd, which is closed, into @text, NUL-terminated.  Returns 0 or -errno. */
static int read_text(int fd, char *text)
{
	size_t len = 0;
	ssize_t n;
	int err = 0;

	while ((n = read(fd, text + len, TEXT_SIZE - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		err = -errno;
	text[len] = '\0';
	close(fd);
	return err;
}

/* The number in the line @name of @text, in bytes.  False: there is no such line. */
static bool find_bytes(const char *text, const char *name, uint64_t *bytes)
{
	const size_t len = strlen(name);

	for (const char *line = text; *line;) {
		const char *end = strchr(line, '\n');

		if (!strncmp(line, name, len)) {
			*bytes = strtoull(line + len, NULL, 10) * 1024;
			return true;
		}
		if (!end)
			break;
		line = end + 1;
	}
	return false;
}

static void take_lines(struct mlk_memory *sample, const char *text, const struct line *lines,
		       size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (find_bytes(text, lines[i].name, &sample->value[lines[i].value]))
			sample->known |= UINT64_C(1) << lines[i].value;
}

static int read_file(const struct target *t, enum helper_file file, char *text)
{
	int fd = target_open_file(t, file);

	return fd < 0 ? fd : read_text(fd, text);
}

void memory_read(const struct target *t, struct mlk_memory *sample)
{
	struct target of = *t; /* who follows the process finds its other threads on his own */
	char text[TEXT_SIZE];
	int err = 0;

	*sample = (struct mlk_memory){.tgid = (uint32_t)t->pid};
	/* of a thread that has ended it tells nothing, even if the process lives */
	for (int tries = 0; tries < 2 && !sample->known; tries++) {
		if (tries)
			target_find_other(&of);
		err = read_file(&of, HELPER_STATUS, text);
		if (!err)
			take_lines(sample, text, of_status, NR(of_status));
	}
	sample->time_ns = clock_now_ns();
	if (sample->known)
		return;
	/* the file is there, but it has no memory: it is on its way out */
	sample->error = !err || target_has_ended(t) ? ESRCH : (uint32_t)-err;
}

int memory_open_pages(const struct target *t)
{
	return target_open_file(t, HELPER_ROLLUP);
}

int memory_read_pages(int fd, struct mlk_memory *sample)
{
	char text[TEXT_SIZE];
	int err = read_text(fd, text);

	if (!err)
		take_lines(sample, text, of_rollup, NR(of_rollup));
	return err;
}

void memory_read_machine(struct mlk_memory *sample)
{
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC), err;
	char text[TEXT_SIZE];
	uint64_t all, unused;

	*sample = (struct mlk_memory){0};
	err = fd < 0 ? -errno : read_text(fd, text);
	sample->time_ns = clock_now_ns();
	if (!err)
		take_lines(sample, text, of_meminfo, NR(of_meminfo));
	if (!err && find_bytes(text, "SwapTotal:", &all) &&
	    find_bytes(text, "SwapFree:", &unused) && unused <= all) {
		sample->value[MLK_MEMORY_SWAP] = all - unused;
		sample->known |= UINT64_C(1) << MLK_MEMORY_SWAP;
	}
	if (!sample->known)
		sample->error = err ? (uint32_t)-err : ENODATA;
}
