/* exec_env.c - see exec_env.h */
#include "record/libpreload/process/exec_env.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/guard/guard.h"

/* An environment with what the library needs; mapped, because malloc may be locked. */
struct scratch {
	size_t bytes;
	int fd; /* of the shared memory, to be closed; -1: the program opens it by itself, or has
		   it by one that stays open */
	struct preload_header *header;
	struct preload_process *process; /* that becomes the program; NULL: a child does */
	uint64_t note;			 /* as begun_note() has it */
	char *const *env;
	char memory[112];
	char preload[]; /* "LD_PRELOAD=..." and then the pointers */
};

/* In the place of a mapping, where the process may have no more addresses. */
static union {
	struct scratch scratch;
	char bytes[65536];
} spare;
static bool spare_taken;

static struct scratch *get_scratch(size_t bytes)
{
	struct scratch *s = preload_real.mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (s != MAP_FAILED)
		return s;
	if (bytes > sizeof(spare) || __atomic_exchange_n(&spare_taken, true, __ATOMIC_ACQ_REL))
		return NULL;
	memset(&spare, 0, sizeof(spare.scratch));
	return &spare.scratch;
}

static void give_scratch_back(struct scratch *s, size_t bytes)
{
	if (s == &spare.scratch)
		__atomic_store_n(&spare_taken, false, __ATOMIC_RELEASE);
	else
		preload_real.munmap(s, bytes);
}

static char *put(char *to, const char *text)
{
	size_t len = strlen(text);

	memcpy(to, text, len + 1);
	return to + len;
}

static char *put_number(char *to, uint64_t value, unsigned int base)
{
	char digits[24];
	unsigned int n = 0;

	do
		digits[n++] = "0123456789abcdef"[value % base];
	while (value /= base);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
	return to;
}

/* Open the memory @ours that process @pid, the recorder, has as descriptor @number.  -1: it cannot
 * be. */
static int open_of(uint32_t pid, uint32_t number, const char *ours, int how)
{
	char path[64], name[64] = "", *end;

	end = put_number(put(path, "/proc/"), pid, 10);
	put_number(put(end, "/fd/"), number, 10);
	/* The recorder may have ended, and another may have its number. */
	if (readlink(path, name, sizeof(name) - 1) < 0 || strncmp(name, ours, strlen(ours)))
		return -1;
	return open(path, how | O_CLOEXEC | O_NOCTTY);
}

int preload_reopen(uint32_t pid, uint32_t number)
{
	return open_of(pid, number, "/memfd:" PRELOAD_MEMORY_NAME, O_RDWR);
}

int preload_open_facts(uint32_t pid, uint32_t number)
{
	return open_of(pid, number, "/memfd:" PRELOAD_FACTS_NAME, O_RDONLY);
}

static int reopen(void)
{
	return preload_reopen(preload_settings.recorder_pid, preload_settings.recorder_fd);
}

/* The shared memory again, for the program that comes next in this process; @opened is closed.
 * Another user than the recorder's has it by what stayed open: here, or in the parent if this is a
 * child that closed all. */
static int hand_down(int opened)
{
	int from = opened >= 0 ? opened : preload_kept(), fd;

	if (from < 0 && preload_kept_as() >= 0)
		from = opened = preload_reopen((uint32_t)getppid(), (uint32_t)preload_kept_as());
	if (from < 0)
		return -1;
	fd = preload_dup(from, F_DUPFD);
	if (fd < 0)
		fd = dup(from);
	if (opened >= 0)
		close(opened);
	/* Of the parent's, or if another thread had closed it, it may be another file. */
	if (fd < 0 || preload_is_memory(fd))
		return fd;
	close(fd);
	return -1;
}

/* The same for all that comes next, where the program cannot, or perhaps cannot, open it by itself.
 * Root's may be a static one that begins another as another user.  -1: it can. */
static int hand_on(struct scratch *s, struct preload_header *h, bool other_process)
{
	int opened, fd = preload_kept();

	/* Elsewhere the next program would be taken for the process that has its number here. */
	if (preload_kept_as() < 0 || begun_elsewhere())
		return -1;
	opened = reopen();
	if (opened >= 0 && other_process) {
		close(opened);
		return -1;
	}
	if (opened < 0 && fd >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		return fd; /* as this program got it */
	s->fd = hand_down(opened);
	if (s->fd < 0 && opened < 0)
		begun_doubt(h, s->note, PRELOAD_WHY_CLOSED);
	return s->fd;
}

static bool is_preload(const char *entry)
{
	return !strncmp(entry, "LD_PRELOAD=", 11);
}

static bool is_ours(const char *entry)
{
	return is_preload(entry) || !strncmp(entry, PRELOAD_ENV "=", sizeof(PRELOAD_ENV));
}

/* What @value of LD_PRELOAD has besides this library. */
static const char *others_of(const char *value)
{
	size_t len = strlen(preload_library());

	if (!len || strncmp(value, preload_library(), len))
		return value;
	return value[len] == ':' ? value + len + 1 : value[len] ? value : "";
}

static struct preload_header *own_memory(void)
{
	return preload_shared() ? preload_shared() : preload_own.unclocked;
}

/* The memory if the program that this process begins now is to be recorded. */
static struct preload_header *wanted(bool other_process)
{
	struct preload_header *h = preload_followed();

	if (!h)
		h = preload_left_alone();
	if (!h && !other_process)
		h = preload_is_parent() ? own_memory() : NULL;
	return h && !preload_is_over(h) ? h : NULL;
}

/* What names the memory, into s->memory; @counted: the program's start is counted here.  False: it
 * could not be opened. */
static bool tell(struct scratch *s, struct preload_header *h, bool counted, bool other_process)
{
	const struct preload_settings *set = &preload_settings;
	char *end = put(s->memory, PRELOAD_ENV "=");
	int fd;

	s->fd = -1;
	if (set->follow) {
		fd = hand_on(s, h, other_process);
		end = put_number(put(end, "@"), set->recorder_pid, 10);
		end = put_number(put(end, ","), set->recorder_fd, 10);
		if (fd >= 0)
			end = put_number(put(end, "+"), (uint64_t)fd, 10);
	} else {
		s->fd = hand_down(reopen());
		end = put_number(end, (uint64_t)s->fd, 10);
	}
	end = put_number(put(end, ","), h->nonce, 16);
	if (counted) {
		end = put_number(put(end, ",a"), s->note, 16);
		put_number(put(end, other_process ? "s" : "p"),
			   (uint64_t)preload_syscall(SYS_getpid, 0, 0, 0, 0), 16);
	}
	return set->follow || s->fd >= 0;
}

/* What a child of vfork() mapped for its exec, in the memory of the parent, which has it now. */
static __thread struct scratch *left __attribute__((tls_model("initial-exec")));

static void drop_left(void)
{
	if (left)
		give_scratch_back(left, left->bytes);
	left = NULL;
}

/* The calls that hand the memory @h down are forbidden: a program that does not learn of it from
 * @env is lost. */
static bool is_left(struct preload_header *h, char *const *env)
{
	for (; env && *env; env++)
		if (!strncmp(*env, PRELOAD_ENV "=", sizeof(PRELOAD_ENV)))
			return false;
	preload_tell_confined(h, PRELOAD_LEFT_OUT);
	return true;
}

/* @env with LD_PRELOAD and our variable; @note: of the program's start, NULL if that is not counted
 * here.  NULL: it cannot be. */
static struct scratch *fill(char *const *env, struct preload_header *h, const uint64_t *note,
			    bool other_process)
{
	const char *others = "";
	struct scratch *s;
	size_t nr = 0, text, bytes;
	char **to, *end;

	for (; env && env[nr]; nr++)
		if (is_preload(env[nr]))
			others = others_of(env[nr] + 11);
	text = (strlen(preload_library()) + strlen(others) + 24) & ~(size_t)7;
	bytes = sizeof(*s) + text + (nr + 3) * sizeof(char *);
	s = get_scratch(bytes);
	if (!s) {
		begun_doubt(h, note ? *note : 0, PRELOAD_WHY_NO_ROOM);
		return NULL;
	}
	s->bytes = bytes;
	s->note = note ? *note : 0;
	if (!tell(s, h, note != NULL, other_process)) {
		give_scratch_back(s, bytes);
		return NULL;
	}
	end = put(put(s->preload, "LD_PRELOAD="), preload_library());
	if (*others)
		put(put(end, ":"), others);
	to = (char **)(s->preload + text);
	s->env = to;
	*to++ = s->preload;
	*to++ = s->memory;
	for (size_t i = 0; i < nr; i++)
		if (!is_ours(env[i]))
			*to++ = env[i];
	*to = NULL; /* the spare one may have been another's */
	return s;
}

/* In the place of what could not be made: its program is lost, and counted. */
static __thread struct scratch uncarried __attribute__((tls_model("initial-exec"))) = {.fd = -1};

static struct scratch *do_without(uint64_t note)
{
	uncarried.note = note;
	return &uncarried;
}

struct scratch *carry(char *const *env, const struct begun_program *program, bool other_process)
{
	struct preload_header *h = wanted(other_process);
	struct scratch *s = NULL;
	uint64_t note;

	if (!h)
		return NULL;
	if (!other_process)
		guard_check_all(OVERRUN_AT_EXEC);
	if (preload_no_calls() && !is_left(h, env))
		return NULL;
	note = begun_note(h, program);
	if (!preload_no_calls()) {
		drop_left();
		s = fill(env, h, &note, other_process);
	}
	if (s && !other_process && !preload_is_parent())
		left = s;
	else if (!s)
		s = do_without(note);
	s->header = h;
	s->process = !other_process && preload_is_parent() && !preload_left_alone()
			     ? preload_state.process
			     : NULL;
	if (s->process)
		__atomic_fetch_add(&s->process->execs, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&h->execs, 1, __ATOMIC_RELEASE);
	return s;
}

char *const *exec_env_of(const struct scratch *s, char *const *env)
{
	return s && s->env ? s->env : env;
}

static bool has_ours(char *const *env)
{
	bool memory = false, library = false;

	for (; env && *env; env++) {
		memory |= is_ours(*env) && !is_preload(*env);
		library |= is_preload(*env) && strstr(*env, preload_library());
	}
	return memory && library;
}

/* Is this another user's by now?  Then what the C library begins finds the memory by what stayed
 * open from then on. */
static bool must_leave_open(void)
{
	int fd = preload_kept(), opened;

	if (fd < 0 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		return false;
	opened = reopen();
	if (opened >= 0)
		close(opened);
	return opened < 0 && !fcntl(fd, F_SETFD, 0);
}

void preload_fill_environ(void)
{
	struct preload_header *h = preload_ready() ? preload_followed() : NULL;
	struct scratch *s = NULL;

	if (!h)
		h = preload_left_alone();
	if (h && !preload_is_over(h) && !preload_no_calls() &&
	    (must_leave_open() || !has_ours(environ)))
		s = fill(environ, h, NULL, true);
	/* It is the program's from now on: its C library copies it before it changes it. */
	if (s)
		environ = (char **)(uintptr_t)s->env;
}

void exec_env_back(struct scratch *s)
{
	__atomic_fetch_sub(&s->header->execs, 1, __ATOMIC_RELEASE);
	begun_undo(s->header, s->note);
	if (s->process) {
		__atomic_fetch_sub(&s->process->execs, 1, __ATOMIC_RELEASE);
		guard_note(PRELOAD_GUARD_WATCHED);
	}
}

void exec_env_drop(struct scratch *s)
{
	left = NULL;
	if (s->fd >= 0)
		close(s->fd);
	if (s->bytes)
		give_scratch_back(s, s->bytes);
}
