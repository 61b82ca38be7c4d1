/* lost_programs.c - see lost_programs.h: names from the memory, reasons also from files
 *
 * What the memory says is hostile.  So a file is opened only if it is a regular one, and believed
 * to be that program's only if its number is the one that was noted.
 */
#include "record/preload/lost/lost_programs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/proc.h"
#include "record/preload/lost/hindrance.h"

#define BY_EBPF "; record by eBPF, as root"

static const char *const reasons[PRELOAD_NR_WHYS] = {
	[PRELOAD_WHY_UNKNOWN] = "the preloaded library did not start in it, could not open the "
				"memory shared with mleak, or came too late" BY_EBPF,
	[PRELOAD_WHY_CLOSED] = "it is another user's, and what began it had closed the descriptor "
			       "of the memory shared with mleak" BY_EBPF,
	[PRELOAD_WHY_NO_ROOM] = "there was no memory for its environment",
	[PRELOAD_WHY_CONFINED] = "what began it had turned on seccomp" BY_EBPF,
	[PRELOAD_WHY_ADDRESSES] = "its addresses are limited (ulimit -v), and are too few for the "
				  "memory shared with mleak; raise the limit, or give a smaller "
				  "--ring-size",
	[PRELOAD_WHY_NAMESPACE] = "it is in another pid namespace" BY_EBPF,
	[PRELOAD_WHY_FULL] = "512 processes were recorded at one time, and more cannot be" BY_EBPF,
	[PRELOAD_WHY_LATE] = "mleak did not answer it in two seconds",
	[PRELOAD_WHY_CLOCK] = "it may not read the time stamp counter" BY_EBPF,
	[PRELOAD_WHY_DESCRIPTORS] = "mleak had no descriptor left for it; raise the limit (ulimit "
				    "-n)",
	[PRELOAD_WHY_FORBIDDEN] = "it is another user's, and mleak may not examine it" BY_EBPF,
	[PRELOAD_WHY_UNEXAMINED] = "mleak could not examine it" BY_EBPF,
};

/* A copy of what the memory says of name @place.  False: there is none. */
static bool copy_name(const struct preload_header *memory, uint32_t place, struct preload_begun *to)
{
	const struct preload_begun *from = &memory->begun[place];
	uint64_t state = __atomic_load_n(&from->state, __ATOMIC_ACQUIRE);

	if (!(state & PRELOAD_BEGUN_COUNT) || state & PRELOAD_BEGUN_NAMING)
		return false;
	*to = *from;
	/* What is checked is the copy. */
	__asm__ volatile("" : : : "memory");
	if (__atomic_load_n(&from->state, __ATOMIC_ACQUIRE) >> 32 != state >> 32)
		return false;
	to->state = state;
	to->name[sizeof(to->name) - 1] = '\0';
	return true;
}

/* Open for reading what @found is open on as O_PATH, if that is the file of a program: of others,
 * as /proc has them, something may be lost by reading.  Returns -1: it is none, or cannot be. */
static int open_found(int found)
{
	char link[32];
	struct stat st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	return !fstat(found, &st) && S_ISREG(st.st_mode) && st.st_mode & 0111
		       ? open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
		       : -1;
}

/* The same for the file at @path, which is to be that of @b, if that has a number.  *@is_it: it is,
 * though it may not be read. */
static int open_file(const char *path, const struct preload_begun *b, bool *is_it)
{
	int found = open(path, O_PATH | O_CLOEXEC), fd = -1;
	struct stat st;

	if (found < 0)
		return -1;
	*is_it = !b->inode || (!fstat(found, &st) && st.st_dev == b->dev && st.st_ino == b->inode);
	if (*is_it)
		fd = open_found(found);
	close(found);
	return fd;
}

/* The same for @path as the process of @b names it, which may have another root. */
static int open_of(const char *path, const struct preload_begun *b, bool *is_it)
{
	char there[PRELOAD_BEGUN_NAME + 32];
	int fd = -1;

	*is_it = false;
	if (*path != '/')
		return -1;
	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)b->pid, path);
	if ((int)b->pid > 0)
		fd = open_file(there, b, is_it);
	return *is_it ? fd : open_file(path, b, is_it);
}

/* The program that executes the script @fd, which is closed; @fd itself, if it is none
 * (*@is_script). */
static int open_interpreter(int fd, const struct preload_begun *b, bool *is_script)
{
	struct preload_begun of = {.pid = b->pid};
	char text[256] = "", *path;
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	bool is_it;

	*is_script = len >= 3 && !memcmp(text, "#!", 2);
	if (!*is_script)
		return fd;
	close(fd);
	path = text + 2 + strspn(text + 2, " \t");
	path[strcspn(path, " \t\n")] = '\0';
	return open_of(path, &of, &is_it);
}

/* Why the library does not come up in the program of @b, as far as its file tells; NULL: it does
 * not. */
static const char *look_at_file(const struct preload_begun *b)
{
	bool rights = b->how & PRELOAD_BEGUN_SETS_ID, is_it = false, is_script;
	int fd = b->inode ? open_of(b->name, b, &is_it) : -1;
	const char *why;

	if (fd < 0) /* often only root may read those */
		return is_it && rights ? HINDRANCE_RIGHTS : NULL;
	fd = open_interpreter(fd, b, &is_script);
	if (fd < 0)
		return NULL;
	rights = rights && !is_script;
	if (b->how & PRELOAD_BEGUN_NOT_ROOT && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		rights = true;
	why = hindrance_of(fd, rights);
	close(fd);
	return why;
}

static void add(struct lost_programs *lost, const char *name, const char *why, uint64_t nr)
{
	struct lost_program *p = lost->all;

	while (p < lost->all + lost->nr && (p->why != why || strcmp(p->name, name) != 0))
		p++;
	if (p == lost->all + LOST_PROGRAMS_MAX)
		return;
	if (p == lost->all + lost->nr) {
		lost->nr++;
		snprintf(p->name, sizeof(p->name), "%s", name);
		p->why = why;
	}
	p->nr += nr;
}

/* The name of process @pid, whose program is open as @program, into @name.  False: it has none any
 * more. */
static bool name_process(char *name, size_t size, pid_t pid, int program)
{
	char link[32];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", program);
	len = program >= 0 ? readlink(link, name, size - 1) : -1;
	if (len > 0)
		name[len] = '\0';
	else if (proc_read(name, size, "/proc/%d/comm", (int)pid))
		name[strcspn(name, "\n")] = '\0';
	else
		return false;
	return true;
}

void lost_programs_note(struct lost_programs *lost, pid_t pid, int program)
{
	char name[PRELOAD_BEGUN_NAME];
	int fd = program < 0 ? -1 : open_found(program);
	const char *why = NULL;

	if (fd >= 0) {
		why = hindrance_of(fd, false);
		close(fd);
	}
	if (!why)
		why = "it was begun by no call that the preloaded library sees" BY_EBPF;
	if (name_process(name, sizeof(name), pid, program))
		add(lost, name, why, 1);
}

void lost_programs_look(struct lost_programs *lost, const struct preload_header *memory)
{
	struct preload_begun b;

	for (uint32_t i = 0; i < PRELOAD_MAX_BEGUN; i++) {
		if (!copy_name(memory, i, &b) || lost->seen[i].number == (b.state >> 32) + 1)
			continue;
		lost->seen[i].number = (b.state >> 32) + 1;
		lost->seen[i].why = look_at_file(&b);
	}
}

void lost_programs_tell(struct lost_programs *lost, const struct preload_header *memory)
{
	struct preload_begun b;

	lost_programs_look(lost, memory);
	for (uint32_t i = 0; i < PRELOAD_MAX_BEGUN; i++) {
		const char *file_says = lost->seen[i].why, *why = NULL;

		if (!copy_name(memory, i, &b) || lost->seen[i].number != (b.state >> 32) + 1)
			continue;
		if (b.why < PRELOAD_NR_WHYS)
			why = reasons[b.why];
		/* what itself says came from a library that started */
		if (!why || (b.why < PRELOAD_WHY_ADDRESSES && file_says))
			why = file_says ? file_says : reasons[PRELOAD_WHY_UNKNOWN];
		add(lost, b.name, why, b.state & PRELOAD_BEGUN_COUNT);
	}
	for (const struct lost_program *p = lost->all; p < lost->all + lost->nr; p++) {
		char times[40] = "";

		if (p->nr > 1)
			snprintf(times, sizeof(times), " (%" PRIu64 " times)", p->nr);
		log_warn("not recorded: %s%s: %s", p->name[0] ? p->name : "a program", times,
			 p->why);
	}
}
