/* test_record_returns_steps.c - where functions of installed allocators are probed, against what
 * the processor does
 *
 * A child with the allocator preloaded makes calls.  It is stopped where a function begins, where
 * it returns to, and where its probes would be.  So it is known which registers each call began and
 * ended with, and which probes it passed in between.  To step through all of it instead would take
 * ten times as long and show no more.  Another library can be named by hand: LIBRARY COMMAND...,
 * where the command is to run allocator_calls with that library.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/condition.h"
#include "record/allocator/alloc_functions.h"
#include "record/base/clock.h"

#define LIBRARIES    "/usr/lib/x86_64-linux-gnu/"
#define ENOUGH	     5000	/* calls of one library */
#define FEW	     200	/* however long they take */
#define LONGEST_NS   700000000u /* otherwise */
#define MOST_PLANTED 1024
#define MOST_CALLS   64 /* of the table's functions, nested */

/* A call of a function with a probe. */
struct call {
	const struct alloc_site *site;
	struct user_regs_struct at; /* its entry */
	unsigned int passed, ended; /* the probes of its entry and of its returns, so often */
	uint64_t result, pointee;   /* as its return's probe tells them */
};

static struct stepped {
	const char *path;
	struct alloc_object object;
	uint64_t start, end, offset; /* its code, in memory and in the file */
	pid_t child;
	struct call calls[MOST_CALLS];
	size_t nr;
	struct {
		uint64_t at;
		uint8_t was;
	} planted[MOST_PLANTED]; /* breakpoints */
	size_t nr_planted;
	int memory; /* of the child */
	unsigned int checked, moved, returned, soon;
} s;

static uint64_t word_at(uint64_t address)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, s.child, address, NULL);
}

/* Have a breakpoint at @address, if there is none. */
static void plant(uint64_t address)
{
	const uint8_t int3 = 0xcc;

	for (size_t i = 0; i < s.nr_planted; i++)
		if (s.planted[i].at == address)
			return;
	assert_true(s.nr_planted < MOST_PLANTED);
	s.planted[s.nr_planted].at = address;
	assert_int_equal(pread(s.memory, &s.planted[s.nr_planted].was, 1, (off_t)address), 1);
	assert_int_equal(pwrite(s.memory, &int3, 1, (off_t)address), 1);
	s.nr_planted++;
}

static uint64_t reg_of(const struct user_regs_struct *r, unsigned int number)
{
	const uint64_t of[] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
			       r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	assert_true(number < 16);
	return of[number];
}

static bool is_kept(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
	return a->rbx == b->rbx && a->rbp == b->rbp && a->r12 == b->r12 && a->r13 == b->r13 &&
	       a->r14 == b->r14 && a->r15 == b->r15;
}

/* Find the functions of the library s.path, and where they are probed if no return probe is. */
static void find_places(enum returns_by by)
{
	struct elf_function found[WANTED_NR] = {{0}};
	const char *names[WANTED_NR];
	int fd = open(s.path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elffile_open(fd);
	assert_non_null(elf);
	for (size_t i = 0; i < WANTED_NR; i++)
		names[i] = wanted[i].name;
	elffile_functions(elf, elf, ELF_EXPORTED, &(struct elf_names){names, WANTED_NR, found});
	memset(&s.object, 0, sizeof(s.object));
	for (size_t i = 0; i < WANTED_NR; i++)
		if (found[i].found)
			sites_add(&s.object, &(struct site_wanted){wanted[i].name, wanted[i].func,
								   wanted[i].kind,
								   wanted[i].nr_args, &found[i]});
	sites_choose(&s.object, elf);
	sites_find_returns(&s.object, elf, by == RETURNS_RET ? SITES_ALL : SITES_OPERATORS);
	elf_end(elf);
	close(fd);
}

/* Find the library's code in the child. */
static void find_mapped(void)
{
	char path[64], line[PATH_MAX + 128], real[PATH_MAX];
	FILE *maps;

	assert_non_null(realpath(s.path, real));
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s.child);
	maps = fopen(path, "r");
	assert_non_null(maps);
	s.end = 0;
	while (!s.end && fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset;

		line[strcspn(line, "\n")] = 0;
		if (strstr(line, real) && strstr(line, " r-xp ") &&
		    sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) == 3) {
			s.start = start;
			s.end = end;
			s.offset = offset;
		}
	}
	fclose(maps);
	assert_true(s.end);
}

static void check_entry(const struct user_regs_struct *r, const struct alloc_site *site)
{
	struct call *c = NULL;

	/* What jumps to it is another function's end, or is this one again. */
	for (size_t i = 0; i < s.nr; i++)
		if (s.calls[i].site == site && s.calls[i].at.rsp == r->rsp)
			c = &s.calls[i];
	if (!c)
		fail_msg("%s: the probe of %s is passed without a call", s.path, site->name);
	c->passed++;
	for (unsigned int i = 0; i < site->nr_args; i++) {
		const unsigned int in[] = {7, 6, 2, 1};
		unsigned int now = i < EVENT_MOVED_ARGS ? event_moved_to(i, site->moved) : in[i];

		if (reg_of(r, now) != reg_of(&c->at, in[i]))
			fail_msg("%s: argument %u of %s is not in register %u", s.path, i,
				 site->name, now);
	}
	s.moved += !!site->moved;
}

/* The probe @site of a return is met: note for each call that ends there what it tells. */
static void check_return(const struct user_regs_struct *r, const struct returns_site *site)
{
	bool soon = site->how == RETURNS_SOON;

	if (soon && site->when != RETURNS_ALWAYS && !is_taken(r->eflags, site->when))
		return;
	for (size_t i = 0; i < s.nr; i++) {
		struct call *c = &s.calls[i];

		if (!c->site->by_ret || c->at.rsp != r->rsp)
			continue;
		c->ended++;
		c->result = soon			  ? reg_of(r, site->reg)
			    : site->how == RETURNS_MEMSET ? r->rdi
							  : r->rax;
		c->pointee = word_at(c->at.rdi);
		s.soon += soon;
		if (!is_kept(r, &c->at))
			fail_msg("%s: where %s returns, not all registers are its caller's", s.path,
				 c->site->name);
	}
}

/* The call @c has returned. */
static void check_call(const struct user_regs_struct *r, const struct call *c)
{
	uint32_t func = c->site->func;
	bool by_value = func != FUNC_DELETE && func != FUNC_POSIX_MEMALIGN;

	if (c->passed != 1)
		fail_msg("%s: %s has passed its probe %u times", s.path, c->site->name, c->passed);
	s.checked++;
	if (!c->site->by_ret)
		return;
	if (c->ended != 1)
		fail_msg("%s: %s has been seen to return %u times", s.path, c->site->name,
			 c->ended);
	if ((by_value && c->result != r->rax) ||
	    (func == FUNC_POSIX_MEMALIGN &&
	     ((int)c->result != (int)r->rax || c->pointee != word_at(c->at.rdi))))
		fail_msg("%s: %s has returned something else", s.path, c->site->name);
	s.returned++;
}

/* What the child is about to do at @r. */
static void check_step(const struct user_regs_struct *r)
{
	const struct alloc_object *o = &s.object;
	uint64_t at = r->rip - s.start + s.offset;

	for (; s.nr && s.calls[s.nr - 1].at.rsp < r->rsp; s.nr--)
		check_call(r, &s.calls[s.nr - 1]);
	if (r->rip < s.start || r->rip >= s.end)
		return;
	for (size_t i = 0; i < o->nr; i++)
		if (o->sites[i].function == at) {
			assert_true(s.nr < MOST_CALLS);
			s.calls[s.nr++] = (struct call){.site = &o->sites[i], .at = *r};
			plant(word_at(r->rsp));
		}
	for (size_t i = 0; i < o->nr; i++)
		if (o->sites[i].function + o->sites[i].offset == at)
			check_entry(r, &o->sites[i]);
	for (size_t i = 0; i < o->returns.nr; i++)
		if (o->returns.v[i].at == at)
			check_return(r, &o->returns.v[i]);
}

static void plant_all(void)
{
	const struct alloc_object *o = &s.object;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)s.child);
	s.memory = open(path, O_RDWR | O_CLOEXEC);
	assert_true(s.memory >= 0);
	for (size_t i = 0; i < o->nr; i++) {
		plant(o->sites[i].function - s.offset + s.start);
		plant(o->sites[i].function + o->sites[i].offset - s.offset + s.start);
	}
	for (size_t i = 0; i < o->returns.nr; i++)
		plant(o->returns.v[i].at - s.offset + s.start);
}

static void wait_for_trap(void)
{
	int status;

	assert_int_equal(waitpid(s.child, &status, 0), s.child);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		fail_msg("%s: the child has status 0x%x", s.path, status);
}

/* The child is at a breakpoint: check, and let it do what is there. */
static void step_over(void)
{
	const uint8_t int3 = 0xcc;
	struct user_regs_struct r;

	assert_false(ptrace(PTRACE_GETREGS, s.child, NULL, &r));
	r.rip--;
	for (size_t i = 0; i < s.nr_planted; i++)
		if (s.planted[i].at == r.rip) {
			off_t at = (off_t)r.rip;

			check_step(&r);
			assert_false(ptrace(PTRACE_SETREGS, s.child, NULL, &r));
			assert_int_equal(pwrite(s.memory, &s.planted[i].was, 1, at), 1);
			assert_false(ptrace(PTRACE_SINGLESTEP, s.child, NULL, NULL));
			wait_for_trap();
			assert_int_equal(pwrite(s.memory, &int3, 1, at), 1);
			return;
		}
	fail_msg("%s: a breakpoint of nobody's", s.path);
}

static pid_t start_child(char *const *argv, const char *preload)
{
	cpu_set_t here;
	pid_t child;

	/* A step takes a third of the time if both run on the same processor. */
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	child = fork();
	if (child)
		return child;
	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	execv(argv[0], argv);
	_exit(127);
}

/* Check the calls of the library @path, which the child @argv makes. */
static void check_library(const char *path, char *const *argv, const char *preload,
			  enum returns_by by)
{
	uint64_t until;
	int status;

	s = (struct stepped){.path = path};
	find_places(by);
	s.child = start_child(argv, preload);
	wait_for_trap();
	ptrace(PTRACE_SETOPTIONS, s.child, NULL, PTRACE_O_EXITKILL);
	find_mapped();
	plant_all();
	until = clock_now_ns() + LONGEST_NS;
	do {
		assert_false(ptrace(PTRACE_CONT, s.child, NULL, NULL));
		wait_for_trap();
		step_over();
	} while (s.checked < FEW || (s.checked < ENOUGH && clock_now_ns() < until));
	kill(s.child, SIGKILL);
	waitpid(s.child, &status, 0);
	close(s.memory);
	print_message("%s: %u calls, %u with arguments moved; %u returns, %u by jumps\n", path,
		      s.checked, s.moved, s.returned, s.soon);
}

static void what_is_probed_is_what_is_done(void **state)
{
	static const char *const paths[] = {LIBRARIES "libjemalloc.so.2",
					    LIBRARIES "libtcmalloc_minimal.so.4",
					    LIBRARIES "libmimalloc.so.2.0", LIBRARIES "libc.so.6"};
	char calls[PATH_MAX + 32];
	char *const argv[] = {calls, NULL};
	ssize_t len = readlink("/proc/self/exe", calls, PATH_MAX);
	size_t nr = 0;

	(void)state;
	assert_true(len > 0);
	calls[len] = '\0';
	strcpy(strrchr(calls, '/'), "/allocator_calls");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (access(paths[i], R_OK))
			continue;
		check_library(paths[i], argv, paths[i], RETURNS_AUTO);
		check_library(paths[i], argv, paths[i], RETURNS_RET);
		nr++;
	}
	if (!nr)
		skip();
}

/* Of another library, by hand. */
static char **by_hand;

static void what_is_probed_by_hand_is_what_is_done(void **state)
{
	(void)state;
	check_library(by_hand[0], by_hand + 1, NULL, RETURNS_AUTO);
	check_library(by_hand[0], by_hand + 1, NULL, RETURNS_RET);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_probed_is_what_is_done)};
	const struct CMUnitTest others[] = {
		cmocka_unit_test(what_is_probed_by_hand_is_what_is_done)};

	by_hand = argv + 1;
	return argc > 2 ? cmocka_run_group_tests(others, NULL, NULL)
			: cmocka_run_group_tests(tests, NULL, NULL);
}
