/* test_record_helper.c - the helper does what it is asked to for the processes it was given, and
 * for no others; what it says is compared with what this process sees itself */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/helper/helper_serve.h"
#include "record/privilege/helper.h"
#include "record/target/target.h"

static uint64_t shared_value = 0x1122334455667788u; /* every child has it at this address */

/* A process that sleeps, has its own child that does so, whose number is *grandchild if that is not
 * NULL, and ends with this process. */
static pid_t start_child(pid_t *grandchild)
{
	int told[2], ends[2];
	pid_t pid, inner;
	char c;

	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ends[1]);
		inner = grandchild ? fork() : getpid();
		if (inner && write(told[1], &inner, sizeof(inner)) < 0)
			_exit(1);
		_exit(read(ends[0], &c, 1) != 0);
	}
	close(ends[0]); /* the other end stays open as long as we live */
	close(told[1]);
	assert_int_equal(read(told[0], &inner, sizeof(inner)), sizeof(inner));
	close(told[0]);
	if (grandchild)
		*grandchild = inner;
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct helper *start_helper(pid_t ward, bool follow)
{
	const struct helper_opts opts = {
		.pids = &ward, .nr = 1, .follow = follow, .caps = UINT64_MAX};
	struct helper *h;

	assert_int_equal(helper_start(&h, helper_serve), 0);
	assert_int_equal(helper_begin(h, &opts), 0);
	return h;
}

static struct helper_task task(pid_t pid)
{
	return (struct helper_task){pid, pid};
}

/* The code that a test and its children run. */
static struct mlk_mapping own_code(struct maps *maps)
{
	const struct mlk_mapping *m;

	assert_int_equal(maps_read(maps, getpid()), 0);
	m = maps_find(maps, (uintptr_t)own_code);
	assert_non_null(m);
	return *m;
}

static void memory_and_files_of_a_ward_are_given(void **state)
{
	pid_t child = start_child(NULL);
	struct helper *h = start_helper(child, false);
	struct helper_task of = task(child);
	struct maps maps = {0}, theirs = {0};
	struct mlk_mapping code = own_code(&maps);
	struct stat st, exe;
	uint64_t value = 0;
	int fd;

	(void)state;
	assert_int_equal(helper_read(h, &of, (uintptr_t)&shared_value, &value, sizeof(value)), 0);
	assert_int_equal(value, shared_value);
	fd = helper_open(h, &of, HELPER_MAPS);
	assert_true(fd >= 0);
	assert_int_equal(maps_read_fd(&theirs, fd), 0);
	assert_non_null(maps_find(&theirs, code.start));
	close(fd);
	fd = helper_open_mapped(h, &of, &code);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	assert_int_equal(st.st_ino, exe.st_ino);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	helper_stop(h);
	maps_release(&maps);
	maps_release(&theirs);
	end_child(child);
}

static void a_ward_is_stopped_and_copied_at_once(void **state)
{
	pid_t child = start_child(NULL);
	struct helper *h = start_helper(child, false);
	struct helper_task of = task(child);
	const uint64_t room = 64u << 20;
	int fd = memfd_create("room", MFD_CLOEXEC), roots;
	struct stat st;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)room), 0);
	assert_int_equal(helper_freeze(h, &of, fd, 8192), -ENOSPC);
	assert_int_equal(helper_freeze(h, &of, fd, room), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true((uint64_t)st.st_size > room);
	assert_int_equal(helper_freeze(h, &of, -1, room), -EINVAL);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	/* it has none */
	roots = helper_roots(h, &of);
	assert_true(roots >= 0);
	assert_int_equal(lseek(roots, 0, SEEK_END), 0);
	close(roots);
	close(fd);
	helper_stop(h);
	end_child(child);
}

static void other_processes_are_refused(void **state)
{
	pid_t child = start_child(NULL), other = start_child(NULL);
	struct helper *h = start_helper(child, true);
	struct helper_task of = task(other);
	struct maps maps = {0};
	struct mlk_mapping code = own_code(&maps);
	uint64_t value;
	bool stopped;

	(void)state;
	assert_int_equal(helper_read(h, &of, (uintptr_t)&shared_value, &value, 8), -EPERM);
	assert_int_equal(helper_open(h, &of, HELPER_MAPS), -EPERM);
	assert_int_equal(helper_open_mapped(h, &of, &code), -EPERM);
	assert_int_equal(helper_hold(h, other, &stopped), -EPERM);
	assert_int_equal(helper_roots(h, &of), -EPERM);
	assert_int_equal(helper_freeze(h, &of, 0, 4096), -EPERM);
	assert_int_equal(helper_signal(h, other, SIGTERM), -EPERM);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	/* Nor by the name of a ward. */
	of = (struct helper_task){child, other};
	assert_int_equal(helper_open(h, &of, HELPER_MAPS), -ESRCH);
	of = task(-1);
	assert_int_equal(helper_open(h, &of, HELPER_MAPS), -EPERM);
	helper_stop(h);
	maps_release(&maps);
	end_child(child);
	end_child(other);
}

static void what_no_recording_needs_is_refused(void **state)
{
	pid_t child = start_child(NULL);
	struct helper *h = start_helper(child, false);
	struct helper_task of = task(child);
	uint64_t offset = 0;
	struct helper_link link = {.of = of,
				   .program = STDIN_FILENO,
				   .file = STDIN_FILENO,
				   .multi = true,
				   .nr = 1,
				   .offsets = &offset,
				   .cookies = &offset};
	struct mlk_mapping stack = {.start = (uintptr_t)&offset & ~4095ull};
	char room[16];

	(void)state;
	assert_int_equal(helper_link(h, &link), -EINVAL); /* no program that it was given */
	assert_int_equal(helper_open_mapped(h, &of, &stack), -ENOENT); /* no file */
	assert_int_equal(helper_open(h, &of, HELPER_NR_FILES), -EINVAL);
	assert_int_equal(helper_read(h, &of, 0, room, sizeof(room)), -EFAULT);
	assert_int_equal(helper_signal(h, child, SIGKILL), -EINVAL);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	helper_stop(h);
	end_child(child);
}

static void children_of_a_ward_are_wards_only_when_followed(void **state)
{
	pid_t grandchild, child = start_child(&grandchild);
	struct helper_task of = task(grandchild);

	(void)state;
	for (int follow = 0; follow < 2; follow++) {
		struct helper *h = start_helper(child, follow);
		int fd = helper_open(h, &of, HELPER_MAPS);

		assert_int_equal(fd >= 0, follow);
		if (fd >= 0)
			close(fd);
		else
			assert_int_equal(fd, -EPERM);
		helper_stop(h);
	}
	kill(grandchild, SIGKILL);
	end_child(child);
}

static void who_has_mapped_the_memory_is_a_ward_only_when_followed(void **state)
{
	pid_t child = start_child(NULL), other;
	struct helper_task of;
	int fd = memfd_create("memory", MFD_CLOEXEC);
	struct stat st;
	void *memory;

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fstat(fd, &st), 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	other = start_child(NULL);
	of = task(other);
	for (int i = 0; i < 4; i++) {
		const struct helper_opts opts = {.pids = &child,
						 .nr = 1,
						 .follow = i & 1,
						 .memory_dev = st.st_dev,
						 .memory_inode = st.st_ino + (i & 2),
						 .caps = UINT64_MAX};
		struct helper *h;
		int maps;

		assert_int_equal(helper_start(&h, helper_serve), 0);
		assert_int_equal(helper_begin(h, &opts), 0);
		maps = helper_open(h, &of, HELPER_MAPS);
		assert_int_equal(maps >= 0, i == 1);
		if (maps >= 0)
			close(maps);
		of = task(getpid()); /* the recorder itself */
		assert_int_equal(helper_open(h, &of, HELPER_MAPS), -EPERM);
		of = task(other);
		helper_stop(h);
	}
	munmap(memory, 4096);
	close(fd);
	end_child(other);
	end_child(child);
}

static void held_child_stands_still_until_it_is_let_go(void **state)
{
	pid_t child = start_child(NULL);
	struct helper *h = start_helper(child, false);
	bool stopped = false;
	int err = helper_hold(h, child, &stopped), status;

	(void)state;
	if (err == -EPERM) {
		helper_stop(h);
		end_child(child);
		skip(); /* kernel.yama.ptrace_scope lets only parents trace */
	}
	assert_int_equal(err, 0);
	assert_true(stopped);
	assert_true(helper_let_go(h, child));
	assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	assert_int_equal(helper_signal(h, child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	helper_stop(h);
}

static void number_of_a_ward_that_is_gone_is_nobody_s(void **state)
{
	pid_t child = start_child(NULL);
	struct helper *h = start_helper(child, false);
	struct helper_task of = task(child);

	(void)state;
	end_child(child);
	assert_int_equal(helper_open(h, &of, HELPER_MAPS), -EPERM);
	helper_stop(h);
}

/* The number of our child that is named so; 0: there is none. */
static pid_t find_child(const char *comm)
{
	char path[64], text[64];

	for (pid_t pid = getpid() + 1; pid < getpid() + 1000; pid++) {
		int fd, n;

		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		n = (int)read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n - 1 : 0] = '\0';
		if (!strcmp(text, comm) && !waitpid(pid, NULL, WNOHANG))
			return pid;
	}
	return 0;
}

static void helper_that_was_killed_refuses_all(void **state)
{
	pid_t child = start_child(NULL);
	struct helper *h = start_helper(child, false);
	struct helper_task of = task(child);
	uint64_t value;
	pid_t helper;

	(void)state;
	/* It has its name when it has answered. */
	assert_int_equal(helper_read(h, &of, (uintptr_t)&shared_value, &value, 8), 0);
	helper = find_child("mleak-helper");
	assert_true(helper > 0);
	kill(helper, SIGKILL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(helper_read(h, &of, (uintptr_t)&shared_value, &value, 8), -EPERM);
	assert_int_equal(helper_open(h, &of, HELPER_MAPS), -EPERM);
	helper_stop(h);
	end_child(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_and_files_of_a_ward_are_given),
		cmocka_unit_test(a_ward_is_stopped_and_copied_at_once),
		cmocka_unit_test(other_processes_are_refused),
		cmocka_unit_test(what_no_recording_needs_is_refused),
		cmocka_unit_test(children_of_a_ward_are_wards_only_when_followed),
		cmocka_unit_test(who_has_mapped_the_memory_is_a_ward_only_when_followed),
		cmocka_unit_test(held_child_stands_still_until_it_is_let_go),
		cmocka_unit_test(number_of_a_ward_that_is_gone_is_nobody_s),
		cmocka_unit_test(helper_that_was_killed_refuses_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
