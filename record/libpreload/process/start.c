/* start.c - how the library comes up: the real functions, and the memory shared with the
 * recorder
 *
 * Its first call may be anything's: the loader's, a constructor's, dlsym's own.  So all is made
 * ready at the first call, and blocks that are requested meanwhile come from a small arena.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/libpreload/guard/guard.h"
#include "record/libpreload/process/begun.h"

#define ARENA_HEADER 16 /* before each block of the arena: its size */

union preload_own preload_own __attribute__((aligned(4096)));
struct preload_state preload_state;
uint8_t preload_mode;

static enum { STATE_NONE, STATE_LOOKING, STATE_READY } state;
static bool attached; /* or tried, in vain */
static char library[PATH_MAX];
static unsigned long long modules_added, modules_removed;

uint8_t preload_arena[PRELOAD_ARENA_BYTES] __attribute__((aligned(4096)));
static size_t arena_used;

uint64_t preload_monotonic_ns(void)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void *arena_alloc(size_t align, size_t size)
{
	size_t at, end;

	if (align < ARENA_HEADER)
		align = ARENA_HEADER;
	if (align > 4096 || size > PRELOAD_ARENA_BYTES)
		return NULL;
	end = __atomic_add_fetch(&arena_used, size + align + ARENA_HEADER, __ATOMIC_RELAXED);
	if (end > PRELOAD_ARENA_BYTES)
		return NULL;
	at = (end - size) & ~(align - 1);
	memcpy(preload_arena + at - ARENA_HEADER, &size, sizeof(size));
	return preload_arena + at;
}

bool arena_holds(const void *block)
{
	return (size_t)((const uint8_t *)block - preload_arena) < PRELOAD_ARENA_BYTES;
}

size_t arena_size(const void *block)
{
	size_t size;

	memcpy(&size, (const uint8_t *)block - ARENA_HEADER, sizeof(size));
	return size;
}

const char *preload_library(void)
{
	return library;
}

static int see_counts(struct dl_phdr_info *info, size_t size, void *changed)
{
	(void)size;
	if (info->dlpi_adds != modules_added || info->dlpi_subs != modules_removed)
		*(bool *)changed = true;
	modules_added = info->dlpi_adds;
	modules_removed = info->dlpi_subs;
	return 1;
}

bool preload_modules_changed(void)
{
	bool changed = false;

	dl_iterate_phdr(see_counts, &changed);
	return changed;
}

/* The string after "@name=" in the environment; its entry's place goes to *@entry. */
static char *find_env(const char *name, char ***entry)
{
	size_t len = strlen(name);

	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=') {
			*entry = e;
			return *e + len + 1;
		}
	return NULL;
}

static void remove_env(char **entry)
{
	do
		entry[0] = entry[1];
	while (*entry++);
}

/* Learn our path, which the recorder put first; with @clean, what the target starts runs without
 * us. */
static void clean_env(bool clean)
{
	char **entry, *value = find_env("LD_PRELOAD", &entry), *rest;
	size_t len;

	if (!value)
		return;
	rest = strchr(value, ':');
	len = rest ? (size_t)(rest - value) : strlen(value);
	if (len < sizeof(library))
		memcpy(library, value, len);
	if (clean && rest)
		memmove(value, rest + 1, strlen(rest + 1) + 1);
	else if (clean)
		remove_env(entry);
}

static uint64_t number(char **text, unsigned int base)
{
	uint64_t value = 0;

	for (;; (*text)++) {
		unsigned int digit = (unsigned char)**text;

		digit = digit >= 'a' ? digit - 'a' + 10 : digit - '0';
		if (digit >= base)
			return value;
		value = value * base + digit;
	}
}

/* Begin to record this program. */
static void begin(struct preload_header *h)
{
	bool fresh;

	if (madvise(&preload_own, sizeof(preload_own), MADV_WIPEONFORK) ||
	    !preload_join(h, &fresh) || !preload_settle(h))
		return;
	if (preload_state.program >> PRELOAD_SLOT_BITS != 1)
		preload_sums_begin(h, !fresh);
	preload_own.shared = h;
	if (preload_settings.guard)
		guard_begin(h->nonce);
	guard_note(PRELOAD_GUARD_WATCHED);
	if (preload_state.program >> PRELOAD_SLOT_BITS == 1)
		return;
	preload_small(EVENT_EXEC, NULL, 0, 0);
	if (!fresh) /* else they were examined */
		preload_maps_changed(true);
}

/* Was the start of this program counted, in @h, as @text says, the end of our variable? A static
 * program hands on what was said of itself. */
static bool is_counted(struct preload_header *h, char *text)
{
	uint64_t note;
	uint32_t pid;
	char how;

	if (strncmp(text, ",a", 2) != 0)
		return false;
	text += 2;
	note = number(&text, 16);
	how = *text;
	text += how != '\0';
	pid = (uint32_t)number(&text, 16);
	if ((how == 'p' && pid != preload_state.pid) ||
	    (how == 's' && pid != (uint32_t)getppid() && h && begun_is_other(h, note)))
		return false;
	begun_is(note);
	return true;
}

/* The memory that is open as @fd; @text has its nonce, and is moved behind that.  *@counted: the
 * start of this program was. */
static struct preload_header *map(int fd, char **text, bool *counted)
{
	uint64_t nonce = number(text, 16);
	struct preload_header *h = preload_map(fd, nonce);

	*counted = is_counted(h, *text);
	if (!h)
		begun_unmapped(fd, nonce, *counted);
	return h;
}

/* The memory that @value, of our variable, names; for this program only. */
static struct preload_header *inherit(char *value, char **entry)
{
	int fd = (int)number(&value, 10), own;
	struct preload_header *h;
	bool counted;

	value += *value == ',';
	h = map(fd, &value, &counted);
	remove_env(entry);
	clean_env(true);
	if (h && h->processes[0].pid != preload_state.pid)
		h = preload_unmap(h);
	/* it is as if it had been opened here */
	own = h ? preload_dup(fd, F_DUPFD_CLOEXEC) : -1;
	preload_keep(own, fd, h != NULL);
	return h;
}

/* The same for this program and all that it begins. */
static struct preload_header *look_up(char *value)
{
	struct preload_header *h;
	int opened, inherited = -1;
	bool counted;
	uint32_t pid = (uint32_t)number(&value, 10), fd;

	value += *value == ',';
	fd = (uint32_t)number(&value, 10);
	if (*value == '+') {
		value++;
		inherited = (int)number(&value, 10);
	}
	value += *value == ',';
	opened = preload_reopen(pid, fd);
	h = map(opened < 0 ? inherited : opened, &value, &counted);
	if (h && !preload_settings.follow)
		h = preload_unmap(h);
	preload_keep(opened, inherited, h != NULL);
	clean_env(false);
	/* What this program begins by other ways than ours is counted when it comes up. */
	if (h && !counted)
		__atomic_fetch_add(&h->execs, 1, __ATOMIC_RELEASE);
	*value = '\0';
	return h;
}

static void attach(void)
{
	int saved_errno = errno;
	struct preload_header *h = NULL;
	uint8_t mode;
	char **entry, *value;

	attached = true;
	preload_state.pid = (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0);
	if (preload_state.pid == (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0))
		preload_state.main_thread = (uint64_t)__builtin_thread_pointer();
	/* A program with rights that its user has not takes no memory from him. */
	value = getauxval(AT_SECURE) || preload_is_second() ? NULL : find_env(PRELOAD_ENV, &entry);
	if (value) {
		h = *value == '@' ? look_up(value + 1) : inherit(value, entry);
		preload_modules_changed();
	}
	mode = h ? PRELOAD_RECORDED : PRELOAD_UNRECORDED;
	if (h && !preload_has_clock()) {
		begun_lost(h, PRELOAD_WHY_CLOCK);
		h = preload_unmap(h);
	}
	if (h)
		begin(h);
	__atomic_store_n(&preload_mode, mode, __ATOMIC_RELEASE);
	errno = saved_errno;
}

bool preload_come_up(void)
{
	int none = STATE_NONE;

	if (state != STATE_READY) {
		if (!__atomic_compare_exchange_n((int *)&state, &none, STATE_LOOKING, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return false;
		preload_find();
		__atomic_store_n((int *)&state, STATE_READY, __ATOMIC_RELEASE);
	}
	/* Before the C library is initialised there is no environment. */
	if (!attached && environ)
		attach();
	preload_state.ready = attached;
	return true;
}

__attribute__((constructor)) static void constructor(void)
{
	preload_ready();
}
