/* perf_map.c - see perf_map.h */
#include "record/generated/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/base/proc.h"

#define STATUS_SIZE 4096
#define APART_S	    2 /* clocks and ticks are rounded */

/* The last number in the line of @status that begins with @name, or the second with @second. */
static unsigned long status_number(const char *status, const char *name, bool second)
{
	const char *line = strstr(status, name);
	unsigned long number = 0;

	if (!line)
		return 0;
	line += strlen(name);
	for (int i = 0; *line && *line != '\n' && (!second || i < 2); i++) {
		char *end;
		unsigned long found = strtoul(line, &end, 10);

		if (end == line)
			break;
		number = found;
		line = end;
	}
	return number;
}

/* When @t began, by CLOCK_REALTIME; 0: that is not known. */
static int64_t find_start(const struct target *t)
{
	enum { START = 22 }; /* proc_pid_stat(5): in ticks since the system began */
	const long ticks_a_second = sysconf(_SC_CLK_TCK);
	struct timespec real, since_boot;
	char text[1024];
	long long ticks = strtoll(proc_stat(text, sizeof(text), t->pid, t->pid, START), NULL, 10);

	if (ticks <= 0 || ticks_a_second <= 0 || clock_gettime(CLOCK_REALTIME, &real) ||
	    clock_gettime(CLOCK_BOOTTIME, &since_boot))
		return 0;
	return real.tv_sec - since_boot.tv_sec + ticks / ticks_a_second;
}

/* Find out how the process is called in its namespace, and whether its root is ours. */
static void find_process(struct perf_map *m, const struct target *t)
{
	char status[STATUS_SIZE];
	struct stat ours, theirs;
	int fd = target_open_file(t, HELPER_STATUS);
	ssize_t len = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);

	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return;
	status[len] = '\0';
	m->inner = (pid_t)status_number(status, "\nNSpid:", false);
	m->uid = (uid_t)status_number(status, "\nUid:", true);
	m->started_s = find_start(t);
	m->own_root = !stat("/", &ours) && !target_stat(t, HELPER_ROOT, "", &theirs) &&
		      ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/* Open the file that @place, O_PATH, is, if it is one that may be read.  Returns the descriptor, or
 * -1. */
static int open_place(struct perf_map *m, int place)
{
	char path[64];
	struct stat st;
	int fd;

	/* numbers are used again: an older file is of another process */
	if (fstat(place, &st) || st.st_mtime < m->started_s - APART_S)
		return -1;
	if (S_ISLNK(st.st_mode))
		name_source_problem(&m->source, "is a symbolic link");
	else if (!S_ISREG(st.st_mode))
		name_source_problem(&m->source, "is no regular file");
	else if (st.st_uid != m->uid && st.st_uid != 0)
		name_source_problem(&m->source, "belongs to another user");
	else {
		/* what is looked at is what is opened */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			name_source_problem(&m->source, "cannot be read by this user");
		return fd;
	}
	return -1;
}

/* Open the file of @m below @root, O_PATH.  Returns the descriptor, or -1. */
static int open_below(struct perf_map *m, int root)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char path[64];
	int place, fd;

	snprintf(path, sizeof(path), "tmp/perf-%d.map", (int)m->inner);
	place = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (place < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			name_source_problem(&m->source, "cannot be opened");
		return -1;
	}
	fd = open_place(m, place);
	close(place);
	return fd;
}

/* Find the file, which may be another one by now.  What was open stays so if there is none. */
static void find_file(struct perf_map *m, const struct target *t)
{
	int root, fd;

	if (!m->inner)
		find_process(m, t);
	if (!m->inner)
		return;
	root = target_open_file(t, HELPER_ROOT);
	if (root < 0 && m->own_root) /* the process has ended */
		root = open("/", O_PATH | O_CLOEXEC);
	if (root < 0)
		return;
	fd = open_below(m, root);
	close(root);
	if (fd < 0)
		return;
	if (m->is_open)
		close(m->fd);
	m->fd = fd;
	m->is_open = true;
}

/* Is the file not the one of which the first bytes were taken, or written anew? */
static bool is_other(const struct perf_map *m, uint64_t size)
{
	char tail[sizeof(m->tail)];

	return size < m->offset ||
	       (m->tail_len && (pread(m->fd, tail, m->tail_len, (off_t)(m->offset - m->tail_len)) !=
					(ssize_t)m->tail_len ||
				memcmp(tail, m->tail, m->tail_len) != 0));
}

static void begin_anew(struct perf_map *m)
{
	m->source.anew |= m->offset > 0;
	m->offset = m->tail_len = 0;
}

/* Read @len bytes at the offset, or as many as there are. */
static size_t read_part(const struct perf_map *m, char *text, size_t len)
{
	size_t done = 0;
	ssize_t got;

	while (done < len &&
	       (got = pread(m->fd, text + done, len - done, (off_t)(m->offset + done))) > 0)
		done += (size_t)got;
	return done;
}

/* @taken bytes are taken of @len that were read. */
static void note_taken(struct perf_map *m, size_t taken, size_t len)
{
	size_t tail;

	/* a line that does not end */
	if (!taken && len == PERF_MAP_STEP) {
		taken = len;
		m->source.left_out += len;
		name_source_problem(&m->source, "has lines that are no names");
	}
	tail = taken < sizeof(m->tail) ? taken : sizeof(m->tail);
	m->offset += taken;
	m->taken += taken;
	m->tail_len =
		tail && pread(m->fd, m->tail, tail, (off_t)(m->offset - tail)) == (ssize_t)tail
			? tail
			: 0;
}

int perf_map_read(struct perf_map *m, const struct target *t, bool no_files, struct code_list *list,
		  char **text, bool *more)
{
	struct stat st;
	size_t len, taken = 0;
	uint64_t left;
	int err;

	*text = NULL;
	*more = false;
	find_file(m, t);
	if (!m->is_open || fstat(m->fd, &st))
		return 0;
	if (is_other(m, (uint64_t)st.st_size))
		begin_anew(m);
	left = (uint64_t)st.st_size - m->offset;
	m->source.beyond = 0;
	if (left > PERF_MAP_MAX - m->taken) {
		m->source.beyond = left - (PERF_MAP_MAX - m->taken);
		left = PERF_MAP_MAX - m->taken;
		name_source_problem(&m->source, "has more than 64 MiB");
	}
	len = left < PERF_MAP_STEP ? (size_t)left : PERF_MAP_STEP;
	if (!len)
		return 0;
	*text = malloc(len);
	if (!*text)
		return -ENOMEM;
	len = read_part(m, *text, len);
	err = code_list_read(list, *text, len, no_files, &taken);
	if (list->strange)
		name_source_problem(&m->source, "has lines that are no names");
	m->source.left_out += list->strange;
	note_taken(m, taken, len);
	*more = len == PERF_MAP_STEP && m->taken < PERF_MAP_MAX;
	return err;
}

void perf_map_begin_trace(struct perf_map *m)
{
	m->offset = m->tail_len = 0;
	m->taken = 0;
	m->first_ns = m->last_ns = 0;
	name_source_begin_trace(&m->source);
}

void perf_map_restart(struct perf_map *m)
{
	m->offset = m->tail_len = 0;
}

void perf_map_execed(struct perf_map *m)
{
	m->source.anew = true;
	m->last_ns = 0;
}

void perf_map_release(struct perf_map *m)
{
	if (m->is_open)
		close(m->fd);
	m->is_open = false;
}
