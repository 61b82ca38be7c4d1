/* begun.c - see begun.h: a few names in the shared memory, each with a count
 *
 * A name is written by whom takes a place to which nothing counts; who finds it there counts up.
 * Both are exchanges of a word that tells also how often the place was taken.
 */
#include "record/libpreload/process/begun.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/preload.h"

#define NAMED	   0x80u /* so that no note is 0 */
#define TAKEN_ONCE (1ull << 32)

static uint64_t own_note;
static bool has_come;
static bool has_other_number; /* and so has what it begins */

/* A name with the file of that name. */
struct named {
	char name[PRELOAD_BEGUN_NAME];
	uint64_t dev, inode;
	uint32_t how;
};

/* @text behind the @len bytes that are there already; only its end, where it is too long.  Returns
 * the new length. */
static size_t append(char *name, size_t len, const char *text, size_t bytes)
{
	size_t room = PRELOAD_BEGUN_NAME - 1 - len;

	if (bytes > room) {
		text += bytes - room;
		bytes = room;
	}
	memcpy(name + len, text, bytes);
	name[len + bytes] = '\0';
	return len + bytes;
}

static bool read_link(char *name, const char *link)
{
	long len = preload_syscall(SYS_readlinkat, AT_FDCWD, (long)link, (long)name,
				   PRELOAD_BEGUN_NAME - 1);

	name[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* What descriptor @fd has open. */
static void name_descriptor(char *name, int fd)
{
	char link[40] = "/proc/self/fd/", digits[12];
	size_t nr = 0, len = strlen(link);

	do
		digits[nr++] = (char)('0' + fd % 10);
	while ((fd /= 10) > 0 && nr < sizeof(digits));
	while (nr)
		link[len++] = digits[--nr];
	read_link(name, link);
}

static bool is_program(const char *path)
{
	struct stat st;

	return !preload_syscall(SYS_newfstatat, AT_FDCWD, (long)path, (long)&st, 0) &&
	       S_ISREG(st.st_mode) &&
	       !preload_syscall(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0);
}

/* The first program @file in a folder of PATH, as the C library finds it. */
static void search(char *name, const char *file)
{
	const char *dir = getenv("PATH");

	for (dir = dir ? dir : "/bin:/usr/bin"; *dir; dir += *dir == ':') {
		size_t bytes = strcspn(dir, ":"), len = append(name, 0, dir, bytes);

		if (bytes)
			len = append(name, len, "/", 1);
		append(name, len, file, strlen(file));
		if (is_program(name))
			return;
		dir += bytes;
	}
	append(name, 0, file, strlen(file));
}

/* A path from the process's root, where one can be found. */
static void find_name(char *name, const struct begun_program *program)
{
	const char *path = program->path;
	char from[PRELOAD_BEGUN_NAME] = "";
	size_t len;

	if (program->search && !strchr(path, '/')) {
		search(from, path);
		path = from;
	}
	name[0] = '\0';
	if (*path == '/') {
		append(name, 0, path, strlen(path));
		return;
	}
	if (program->dir != AT_FDCWD)
		name_descriptor(name, program->dir);
	else if (preload_syscall(SYS_getcwd, (long)name, PRELOAD_BEGUN_NAME - 1, 0, 0) < 0)
		name[0] = '\0';
	if (!strncmp(path, "./", 2))
		path += 2;
	len = strlen(name);
	if (len + 1 + strlen(path) >= PRELOAD_BEGUN_NAME)
		len = 0;
	if (*path && len && name[len - 1] != '/')
		len = append(name, len, "/", 1);
	append(name, len, path, strlen(path));
}

static void look_at_file(struct named *n, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	if (preload_syscall(SYS_newfstatat, AT_FDCWD, (long)n->name, (long)st, 0))
		return;
	n->dev = st->st_dev;
	n->inode = st->st_ino;
}

/* What decides whether the loader takes the library. */
static void look_at_rights(struct named *n)
{
	uint32_t user = (uint32_t)preload_syscall(SYS_geteuid, 0, 0, 0, 0);
	uint32_t group = (uint32_t)preload_syscall(SYS_getegid, 0, 0, 0, 0);
	uint32_t real = (uint32_t)preload_syscall(SYS_getuid, 0, 0, 0, 0);
	uint32_t real_group = (uint32_t)preload_syscall(SYS_getgid, 0, 0, 0, 0);
	struct stat st;

	look_at_file(n, &st);
	if (st.st_mode & S_ISUID)
		user = st.st_uid;
	if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP)
		group = st.st_gid;
	if (user != real || group != real_group)
		n->how |= PRELOAD_BEGUN_SETS_ID;
	if (real)
		n->how |= PRELOAD_BEGUN_NOT_ROOT;
}

static bool has_name(const struct preload_begun *b, uint64_t state, const struct named *n)
{
	uint32_t count = state & PRELOAD_BEGUN_COUNT;

	return count && count < PRELOAD_BEGUN_COUNT && !(state & PRELOAD_BEGUN_NAMING) &&
	       b->dev == n->dev && b->inode == n->inode &&
	       !strncmp(b->name, n->name, PRELOAD_BEGUN_NAME);
}

static bool exchange(struct preload_begun *b, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&b->state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Count one more at @b, if that has the name. */
static bool join(struct preload_begun *b, const struct named *n)
{
	uint64_t state;

	do {
		state = __atomic_load_n(&b->state, __ATOMIC_ACQUIRE);
		if (!has_name(b, state, n))
			return false;
	} while (!exchange(b, state, state + 1));
	return true;
}

static bool take(struct preload_begun *b, const struct named *n)
{
	uint64_t state = __atomic_load_n(&b->state, __ATOMIC_ACQUIRE);
	uint64_t next = (state & ~(TAKEN_ONCE - 1)) + TAKEN_ONCE;

	if (state & (TAKEN_ONCE - 1) || !exchange(b, state, next | PRELOAD_BEGUN_NAMING))
		return false;
	b->why = PRELOAD_WHY_UNKNOWN;
	b->how = 0;
	b->dev = n->dev;
	b->inode = n->inode;
	memcpy(b->name, n->name, PRELOAD_BEGUN_NAME);
	__atomic_store_n(&b->state, next | 1, __ATOMIC_RELEASE);
	return true;
}

/* What names the program that was counted at @place.  Others may count there, but nobody renames
 * it. */
static uint64_t note_of(const struct preload_header *h, uint32_t place)
{
	uint64_t state = __atomic_load_n(&h->begun[place].state, __ATOMIC_RELAXED);

	return state >> 32 << 8 | NAMED | place;
}

static uint64_t count(struct preload_header *h, const struct named *n)
{
	uint32_t i;

	for (i = 0; i < PRELOAD_MAX_BEGUN && !join(&h->begun[i], n); i++)
		;
	if (i == PRELOAD_MAX_BEGUN)
		for (i = 0; i < PRELOAD_MAX_BEGUN && !take(&h->begun[i], n); i++)
			;
	if (i == PRELOAD_MAX_BEGUN)
		return 0;
	__atomic_fetch_or(&h->begun[i].how, n->how, __ATOMIC_RELAXED);
	return note_of(h, i);
}

/* Where @note counts; NULL: nowhere, or somebody else has it. */
static struct preload_begun *place_of(struct preload_header *h, uint64_t note)
{
	uint32_t place = note & (NAMED - 1);

	return note & NAMED && place < PRELOAD_MAX_BEGUN && note_of(h, place) == note
		       ? &h->begun[place]
		       : NULL;
}

uint64_t begun_note(struct preload_header *h, const struct begun_program *program)
{
	struct named n = {.how = 0};
	struct preload_begun *b;
	uint64_t note;

	if (!program->path ||
	    (!preload_no_calls() &&
	     preload_syscall(SYS_faccessat, AT_FDCWD, (long)program->path, F_OK, 0) == -EFAULT))
		return 0;
	if (preload_no_calls()) {
		append(n.name, 0, program->path, strlen(program->path));
	} else {
		find_name(n.name, program);
		look_at_rights(&n);
	}
	note = count(h, &n);
	b = place_of(h, note);
	if (b && preload_no_calls())
		b->why = PRELOAD_WHY_CONFINED;
	else if (b)
		b->pid = (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0);
	if (b && has_other_number)
		b->why = PRELOAD_WHY_NAMESPACE;
	return note;
}

void begun_undo(struct preload_header *h, uint64_t note)
{
	struct preload_begun *b = place_of(h, note);
	uint64_t state;

	do
		state = b ? __atomic_load_n(&b->state, __ATOMIC_ACQUIRE) : 0;
	while (state & PRELOAD_BEGUN_COUNT && !exchange(b, state, state - 1));
}

void begun_doubt(struct preload_header *h, uint64_t note, uint32_t why)
{
	struct preload_begun *b = place_of(h, note);

	if (b)
		__atomic_store_n(&b->why, why, __ATOMIC_RELAXED);
}

bool begun_is_other(struct preload_header *h, uint64_t note)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	const struct preload_begun *b = place_of(h, note);
	struct stat st;

	return b && b->inode && path &&
	       !preload_syscall(SYS_newfstatat, AT_FDCWD, (long)path, (long)&st, 0) &&
	       (st.st_dev != b->dev || st.st_ino != b->inode);
}

void begun_is(uint64_t note)
{
	own_note = note;
}

void begun_came(struct preload_header *h)
{
	begun_undo(h, own_note);
	has_come = true;
}

/* Count this program again where it was.  False: that place has another name by now. */
static bool take_back(struct preload_header *h)
{
	struct preload_begun *b;
	uint64_t state;

	do {
		b = place_of(h, own_note);
		state = b ? __atomic_load_n(&b->state, __ATOMIC_ACQUIRE) : 0;
		if (!b || state >> 32 != own_note >> 8 || state & PRELOAD_BEGUN_NAMING)
			return false;
	} while (!exchange(b, state, state + 1));
	return true;
}

void begun_lost(struct preload_header *h, uint32_t why)
{
	struct named n = {.how = 0};
	struct stat st;

	if (!own_note || (has_come && !take_back(h))) {
		own_note = 0;
		if (read_link(n.name, "/proc/self/exe")) {
			look_at_file(&n, &st);
			own_note = count(h, &n);
		}
	}
	begun_doubt(h, own_note, why);
	own_note = 0;
	has_other_number = why == PRELOAD_WHY_NAMESPACE;
}

bool begun_elsewhere(void)
{
	return has_other_number;
}

void begun_unmapped(int fd, uint64_t nonce, bool counted)
{
	size_t bytes = (offsetof(struct preload_header, processes[1]) + 4095) & ~(size_t)4095;
	struct preload_header *h;
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) != (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    fstat(fd, &st) || (size_t)st.st_size < bytes)
		return;
	h = preload_real.mmap(NULL, (size_t)st.st_size, PROT_NONE, MAP_SHARED, fd, 0);
	if (h != MAP_FAILED) {
		preload_real.munmap(h, (size_t)st.st_size);
		return;
	}
	h = preload_real.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return;
	if (h->layout == PRELOAD_LAYOUT && h->nonce == nonce && !preload_is_over(h) &&
	    (h->follow || h->processes[0].pid == preload_state.pid)) {
		if (!counted && h->follow) /* else the recorder counts the command */
			__atomic_fetch_add(&h->execs, 1, __ATOMIC_RELEASE);
		begun_lost(h, PRELOAD_WHY_ADDRESSES);
	}
	preload_real.munmap(h, bytes);
}
