/* sampler.c - preloaded into any program: save stacks at malloc, and libgcc's own answer to them
 *
 * usage: LD_PRELOAD=sampler.so EXACT_DIR=DIR [EXACT_EVERY=N] [EXACT_LIMIT=N] PROGRAM...
 *
 * Of the calls of malloc, calloc and realloc every N-th (100) is sampled, and those from a place
 * that was not seen before, N (2000) a process.  Each goes to a file of the process in DIR, in the
 * format of exact.h.  The file is opened for every sample: programs close descriptors they do not
 * know.
 *
 * Nothing here allocates.  A thread that is sampling does not sample what it allocates meanwhile,
 * be it in a signal handler.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include "tests/exact/exact.h"

#define MAX_FRAMES 32768
#define MAX_STACK  (1u << 21) /* bytes; a stack inside of a large heap would not end */
#define MAX_SEEN   4096	      /* a power of two */
#define MAX_TRIES  100000
#define PAGE	   4096

/* glibc's own names: no dlsym(), which may allocate, is needed to go on to them. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *block, size_t size);

/* What belongs to the process; reset in a child, which is known by its pid. */
static struct {
	pid_t pid;
	char path[4096];
	unsigned long every, limit;
	unsigned long calls, samples;
	uintptr_t seen[MAX_SEEN]; /* hash table of return addresses */
	uint64_t maps_hash;	  /* of the text last saved */
	bool vdso_saved;
} process;

static bool locked; /* a thread is sampling */
static char maps[1 << 20];
static struct exact_frame frames[MAX_FRAMES];

static __thread bool busy __attribute__((tls_model("initial-exec")));

/* Of the mappings: the executable ones, and where the stack at hand ends. */
struct view {
	size_t len; /* bytes of text in maps[] */
	uint64_t stack_end;
};

/* As getenv(), of which bash has one of its own. */
static const char *variable(const char *name)
{
	size_t len = strlen(name);

	for (char **at = environ; at && *at; at++)
		if (!strncmp(*at, name, len) && (*at)[len] == '=')
			return *at + len + 1;
	return NULL;
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *text = variable(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

/* A new file of its own name for this process image.  False: there is none. */
static bool start_file(void)
{
	const char *dir = variable("EXACT_DIR");
	int fd = -1;

	for (int i = 0; dir && fd < 0 && i < 1000; i++) {
		snprintf(process.path, sizeof(process.path), "%s/%d.%d.exact", dir,
			 (int)process.pid, i);
		fd = open(process.path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void start_process(pid_t pid)
{
	memset(&process, 0, sizeof(process));
	process.pid = pid;
	process.every = setting("EXACT_EVERY", 100);
	process.limit = start_file() ? setting("EXACT_LIMIT", 2000) : 0;
}

static bool first_seen(uintptr_t caller)
{
	size_t at = (caller * 0x9e3779b97f4a7c15u) >> 52 & (MAX_SEEN - 1);

	for (int i = 0; i < 8; i++, at = (at + 1) & (MAX_SEEN - 1)) {
		if (process.seen[at] == caller)
			return false;
		if (!process.seen[at]) {
			process.seen[at] = caller;
			return true;
		}
	}
	return false;
}

/* Read all of /proc/self/maps to the end of maps[]; returns where the text starts. */
static const char *read_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char *text = maps + sizeof(maps) / 2;
	size_t room = sizeof(maps) / 2 - 1, len = 0;
	ssize_t nr;

	while (fd >= 0 && (nr = read(fd, text + len, room - len)) > 0)
		len += (size_t)nr;
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
	return text;
}

static void view_take(struct view *v, uint64_t sp)
{
	const char *line = read_maps(), *next;

	*v = (struct view){0};
	for (; *line; line = next) {
		char *at;
		uint64_t start = strtoull(line, &at, 16), end = strtoull(at + 1, &at, 16);

		next = strchrnul(line, '\n');
		next += *next == '\n';
		if (start <= sp && sp < end)
			v->stack_end = end;
		if (at[3] == 'x') {
			memmove(maps + v->len, line, (size_t)(next - line));
			v->len += (size_t)(next - line);
		}
	}
	while (v->len % 8) /* records are aligned */
		maps[v->len++] = '\n';
}

static uint64_t hash(const char *bytes, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (len--)
		h = (h ^ (uint8_t)*bytes++) * 0x100000001b3u;
	return h;
}

/* One record of @nr parts, the first of which is to hold the header. */
static void put(enum exact_record_type type, struct iovec *parts, int nr)
{
	struct exact_record record = {.type = type};
	int fd = open(process.path, O_WRONLY | O_APPEND | O_CLOEXEC);

	for (int i = 1; i < nr; i++)
		record.len += (uint32_t)parts[i].iov_len;
	parts[0] = (struct iovec){&record, sizeof(record)};
	if (fd < 0 || writev(fd, parts, nr) != (ssize_t)(sizeof(record) + record.len))
		process.limit = 0; /* the file ends there: what follows would not be found */
	if (fd >= 0)
		close(fd);
}

static size_t vdso_len(const Elf64_Ehdr *elf)
{
	return (elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize + PAGE - 1) &
	       ~(size_t)(PAGE - 1);
}

static void save_maps(const struct view *v)
{
	const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	struct iovec text[2] = {[1] = {maps, v->len}};
	uint64_t h = hash(maps, v->len);

	if (vdso && !process.vdso_saved) {
		struct iovec image[2] = {[1] = {(void *)vdso, vdso_len(vdso)}};

		put(EXACT_VDSO, image, 2);
		process.vdso_saved = true;
	}
	if (process.maps_hash != h)
		put(EXACT_MAPS, text, 2);
	process.maps_hash = h;
}

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
	struct exact_sample *s = arg;
	int interrupted = 0;

	if (s->nr_frames == MAX_FRAMES) {
		s->flags |= EXACT_FRAME_LIMIT;
		return _URC_END_OF_STACK;
	}
	frames[s->nr_frames].pc = _Unwind_GetIPInfo(context, &interrupted);
	frames[s->nr_frames].sp = _Unwind_GetCFA(context);
	frames[s->nr_frames++].interrupted = (uint64_t)interrupted;
	return _URC_NO_REASON;
}

static void save_sample(struct exact_sample *s)
{
	struct iovec parts[4] = {[1] = {s, sizeof(*s)}};
	struct view view;
	uint64_t len;

	s->stack_addr = s->regs[DWUNW_X86_64_RSP];
	view_take(&view, s->stack_addr);
	len = view.stack_end > s->stack_addr ? view.stack_end - s->stack_addr : 0;
	if (len > MAX_STACK) {
		len = MAX_STACK;
		s->flags |= EXACT_CUT;
	}
	s->stack_len = (uint32_t)len;
	save_maps(&view);
	parts[2] = (struct iovec){frames, s->nr_frames * sizeof(frames[0])};
	parts[3] = (struct iovec){(void *)s->stack_addr, len};
	put(EXACT_SAMPLE, parts, 4);
}

/* Save registers, stack and libgcc's answer as they are in this function, which is frame 0. */
static __attribute__((noinline)) void sample(void)
{
	struct exact_sample s;

	__asm__ volatile("movq %%rax, 0(%0)\n\tmovq %%rdx, 8(%0)\n\tmovq %%rcx, 16(%0)\n\t"
			 "movq %%rbx, 24(%0)\n\tmovq %%rsi, 32(%0)\n\tmovq %%rdi, 40(%0)\n\t"
			 "movq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r8, 64(%0)\n\t"
			 "movq %%r9, 72(%0)\n\tmovq %%r10, 80(%0)\n\tmovq %%r11, 88(%0)\n\t"
			 "movq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\t"
			 "movq %%r15, 120(%0)\n\tleaq 1f(%%rip), %%rax\n1:\tmovq %%rax, 128(%0)"
			 :
			 : "r"(s.regs)
			 : "rax", "memory");
	s.nr_frames = 0;
	s.flags = 0;
	s.tid = (uint32_t)syscall(SYS_gettid);
	_Unwind_Backtrace(note_frame, &s);
	save_sample(&s);
}

/* A thread that waits here may hold a lock which libgcc needs in the one that samples, so it does
 * not wait for ever. */
static bool lock(pid_t pid)
{
	for (int i = 0; __atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE); i++) {
		/* In a child the thread that had locked is not there. */
		if (process.pid != pid)
			return true;
		if (i == MAX_TRIES)
			return false;
		sched_yield();
	}
	return true;
}

static bool wanted(uintptr_t caller)
{
	if (process.samples >= process.limit)
		return false;
	process.calls++;
	if (!first_seen(caller) && process.calls % process.every)
		return false;
	process.samples++;
	return true;
}

static void on_call(const void *caller)
{
	int saved = errno;
	pid_t pid;

	if (busy)
		return;
	busy = true;
	pid = (pid_t)syscall(SYS_getpid);
	if (lock(pid)) {
		if (process.pid != pid)
			start_process(pid);
		if (wanted((uintptr_t)caller))
			sample();
		__atomic_store_n(&locked, false, __ATOMIC_RELEASE);
	}
	busy = false;
	errno = saved;
}

void *malloc(size_t size)
{
	on_call(__builtin_return_address(0));
	return __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	on_call(__builtin_return_address(0));
	return __libc_calloc(nr, size);
}

void *realloc(void *block, size_t size)
{
	on_call(__builtin_return_address(0));
	return __libc_realloc(block, size);
}
