/* test_record_reach_roots.c - registers of several moments, what the kernel keeps, and stopped
 * processes */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/ptrace/stop_all.h"
#include "record/reach/frozen.h"
#include "record/reach/registers.h"
#include "record/reach/roots.h"
#include "record/reach/walk.h"
#include "threads_child.h"

#define WORDS (300u << 10) /* of the area: more than one piece */
#define NR    5		   /* threads of a child */

static void add(struct reach_threads *t, uint32_t tid, enum mlk_reach_how how, uint64_t value)
{
	t->v = realloc(t->v, (t->nr + 1) * sizeof(*t->v));
	assert_non_null(t->v);
	t->room = t->nr + 1;
	t->v[t->nr++] = (struct mlk_reach_thread){
		.tid = tid, .how = (uint8_t)how, .known = how ? 1u : 0, .regs = {value}};
}

static void registers_of_all_moments_are_kept_once(void **state)
{
	struct reach_threads t = {0};

	(void)state;
	assert_int_equal(registers_settle(&t), 0);
	add(&t, 7, MLK_REACH_WAITING, 1); /* has not moved */
	add(&t, 5, MLK_REACH_WAITING, 1); /* has moved */
	add(&t, 9, MLK_REACH_UNKNOWN, 0); /* was not seen at first */
	add(&t, 3, MLK_REACH_UNKNOWN, 0); /* never was */
	add(&t, 7, MLK_REACH_WAITING, 1);
	add(&t, 5, MLK_REACH_WAITING, 2);
	add(&t, 9, MLK_REACH_SAMPLED, 4);
	add(&t, 3, MLK_REACH_UNKNOWN, 0);
	assert_int_equal(registers_settle(&t), 1);
	assert_int_equal(t.nr, 5);
	assert_int_equal(t.v[0].tid, 3);
	assert_int_equal(t.v[0].how, MLK_REACH_UNKNOWN);
	assert_int_equal(t.v[1].tid, 5);
	assert_int_equal(t.v[1].how, MLK_REACH_SAMPLED);
	assert_int_equal(t.v[2].tid, 5);
	assert_int_equal(t.v[1].regs[0] + t.v[2].regs[0], 3);
	assert_int_equal(t.v[3].tid, 7);
	assert_int_equal(t.v[3].how, MLK_REACH_WAITING);
	assert_int_equal(t.v[4].tid, 9);
	assert_int_equal(t.v[4].how, MLK_REACH_SAMPLED);
	/* once more changes nothing */
	assert_int_equal(registers_settle(&t), 1);
	assert_int_equal(t.nr, 5);
	reach_threads_release(&t);
}

static void lines_of_the_kernel_are_read(void **state)
{
	static const char *const others[] = {"pos:\t0\n",
					     "",
					     "tfd:",
					     "tfd: 5 events: 19\n",
					     "data: 7\n",
					     "signal: 60\n",
					     "notify: signal/pid.2634\n",
					     "ID:\n"};
	struct reach_roots roots = {0};
	uint32_t number = 3;

	(void)state;
	assert_int_equal(roots_parse_epoll(&roots, 4,
					   "tfd:        5 events:       19 data:     7f0c1c000b60  "
					   "pos:0 ino:61 sdev:6\n"),
			 0);
	assert_int_equal(roots_parse_timer(&roots, &number, "ID: 11\n"), 0);
	assert_int_equal(roots_parse_timer(&roots, &number, "signal: 60/00007fff86e452a8\n"), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(roots_parse_epoll(&roots, 4, others[i]), 0);
		assert_int_equal(roots_parse_timer(&roots, &number, others[i]), 0);
	}
	assert_int_equal(roots.nr, 2);
	assert_int_equal(roots.v[0].kind, MLK_ROOT_EPOLL);
	assert_int_equal(roots.v[0].number, 4);
	assert_true(roots.v[0].value == 0x7f0c1c000b60);
	assert_int_equal(roots.v[1].kind, MLK_ROOT_TIMER);
	assert_int_equal(roots.v[1].number, 11);
	assert_true(roots.v[1].value == 0x7fff86e452a8);
	reach_roots_release(&roots);
}

static void own_roots_are_found(void **state)
{
	struct target self = {.pid = getpid(), .task = getpid(), .pidfd = -1};
	struct reach_roots roots = {0};
	struct epoll_event ev = {.events = EPOLLIN, .data = {.u64 = 0x123456789abcdef0}};
	int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC), fd;
	size_t found = 0;

	(void)state;
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &ev), 0);
	assert_int_equal(roots_read(&self, &roots), 0);
	for (size_t i = 0; i < roots.nr; i++)
		found += roots.v[i].kind == MLK_ROOT_EPOLL &&
			 roots.v[i].number == (uint32_t)epoll && roots.v[i].value == ev.data.u64;
	assert_int_equal(found, 1);
	/* as the helper gives them */
	fd = roots_to_file(&self);
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), roots.nr * sizeof(*roots.v));
	close(fd);
	close(epoll);
	close(event);
	reach_roots_release(&roots);
}

static uint64_t *area;

static void live(int i)
{
	while (i)
		__builtin_ia32_pause();
	for (;;)
		pause();
}

/* A child with an area of numbers and NR threads, of which the main one waits. */
static pid_t start_child(void)
{
	area = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	for (size_t i = 0; i < WORDS; i++)
		area[i] = i * 3;
	return start_threads_child(NR, live);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(area, WORDS * 8);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strrchr(text, ')')[2];
}

static void all_threads_stop_and_go_on(void **state)
{
	pid_t pid = start_child(), tid;
	struct user_regs_struct regs;
	struct stop_all stop = {0};

	(void)state;
	assert_int_equal(stop_all_begin(&stop, pid, NULL, NULL), 0);
	assert_int_equal(stop.nr, NR);
	assert_int_equal(state_of(pid), 't');
	for (size_t i = 0; i < stop.nr; i++) {
		assert_int_equal(stop_all_regs(&stop, i, &tid, &regs), 0);
		assert_int_equal(syscall(SYS_tgkill, pid, tid, 0), 0);
		assert_true(regs.rsp != 0);
	}
	stop_all_end(&stop);
	/* it waits again, as before */
	while (state_of(pid) != 'S')
		usleep(100);
	/* what a shell has stopped stays so */
	kill(pid, SIGSTOP);
	while (state_of(pid) != 'T')
		usleep(100);
	assert_int_equal(stop_all_begin(&stop, pid, NULL, NULL), 0);
	assert_int_equal(stop.nr, NR);
	stop_all_end(&stop);
	while (state_of(pid) != 'T')
		usleep(100);
	end_child(pid);
}

/* The words of the area, of which one run after the other has some. */
static size_t check_words(const struct frozen *f)
{
	size_t seen = 0;

	for (size_t i = 0; i < f->nr_runs; i++) {
		const struct freeze_run *run = &f->runs[i];
		const uint64_t *words = frozen_words(f, run);
		uint64_t begin = (uintptr_t)area, end = begin + WORDS * 8;

		assert_int_equal(run->unread, 0);
		for (uint64_t at = run->start; at < run->start + run->bytes; at += 8)
			if (at >= begin && at < end) {
				assert_true(words[(at - run->start) / 8] == (at - begin) / 8 * 3);
				seen++;
			}
	}
	return seen;
}

static void a_copy_has_all_words(void **state)
{
	pid_t pid = start_child();
	struct target t = {.pid = pid, .task = pid, .pidfd = -1};
	struct frozen f = {.fd = -1};
	struct mlk_range *ranges;
	struct maps maps = {0};
	int pagemap = target_open_file(&t, HELPER_PAGEMAP);
	size_t nr;

	(void)state;
	assert_true(pagemap >= 0);
	assert_int_equal(target_read_maps(&t, &maps), 0);
	assert_int_equal(reach_ranges(maps.v, maps.nr, &ranges, &nr), 0);
	assert_int_equal(frozen_prepare(&f, pagemap, ranges, nr), 0);
	assert_int_equal(frozen_take(&f, &t), 0);
	assert_int_equal(check_words(&f), WORDS);
	assert_true(f.header->end_ns > f.header->begin_ns);
	assert_int_equal(frozen_maps(&f, &maps), 0);
	assert_non_null(maps_find(&maps, (uintptr_t)area));
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(frozen_threads(&f, &nr)[i].how, MLK_REACH_STOPPED);
	assert_int_equal(nr, NR);
	frozen_release(&f);
	maps_release(&maps);
	free(ranges);
	close(pagemap);
	end_child(pid);
}

static void too_little_room_is_told(void **state)
{
	pid_t pid = start_child();
	struct target t = {.pid = pid, .task = pid, .pidfd = -1};
	int fd = memfd_create("room", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, WORDS * 4), 0);
	assert_int_equal(freeze_take(&t, fd, WORDS * 4), -ENOSPC);
	while (state_of(pid) == 't')
		usleep(100);
	close(fd);
	end_child(pid);
	assert_int_equal(freeze_take(&t, -1, 4096), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_of_all_moments_are_kept_once),
		cmocka_unit_test(lines_of_the_kernel_are_read),
		cmocka_unit_test(own_roots_are_found),
		cmocka_unit_test(all_threads_stop_and_go_on),
		cmocka_unit_test(a_copy_has_all_words),
		cmocka_unit_test(too_little_room_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
