/* test_record_sandbox.c - what the kernel refuses to who is in the sandbox */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/privilege/privileges.h"

#define NO_LANDLOCK 77

struct place {
	char folder[64], file[96], other[96];
	int open; /* the file, from before */
};

static void make_place(struct place *p)
{
	snprintf(p->folder, sizeof(p->folder), "/tmp/mleak-test-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	snprintf(p->file, sizeof(p->file), "%s/file", p->folder);
	snprintf(p->other, sizeof(p->other), "%s/other", p->folder);
	p->open = open(p->file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(p->open >= 0);
	assert_int_equal(write(p->open, "before", 6), 6);
}

/* Each bit of the result is a deed that was not refused. */
static int deeds(const struct place *p)
{
	int done = 0;

	done |= (open(p->other, O_WRONLY | O_CREAT, 0600) >= 0) << 0;
	done |= (open(p->file, O_WRONLY) >= 0) << 1;
	done |= !rename(p->file, p->other) << 2;
	done |= !unlink(p->file) << 3;
	done |= !mkdir(p->other, 0700) << 4;
	done |= !symlink("/", p->other) << 5;
	execl("/bin/true", "true", (char *)0);
	return done;
}

/* 0: all is as it should be. */
static int in_sandbox(const struct place *p)
{
	int err = sandbox_enter(-1), done;
	char text[16];

	if (err)
		return err == -ENOSYS || err == -EOPNOTSUPP ? NO_LANDLOCK : 1;
	done = deeds(p);
	if (done)
		return 100 + done;
	/* what is open stays so, and files can be read */
	if (pwrite(p->open, "after!", 6, 0) != 6 || ftruncate(p->open, 5))
		return 2;
	if (read(open(p->file, O_RDONLY), text, sizeof(text)) != 5)
		return 3;
	return 0;
}

/* Run @deeds in a process of its own.  Returns its status as waitpid(2) has it. */
static int status_of(int (*deeds)(const struct place *p), const struct place *p)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(deeds(p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(p->open);
	return status;
}

/* All was as it should be; skipped where there is no Landlock. */
static void assert_done(int status)
{
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_LANDLOCK)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void files_are_only_read(void **state)
{
	struct place p;
	struct stat st;
	int status;

	(void)state;
	make_place(&p);
	status = status_of(in_sandbox, &p);
	assert_int_equal(stat(p.file, &st), 0);
	assert_int_not_equal(stat(p.other, &st), 0);
	unlink(p.file);
	rmdir(p.folder);
	assert_done(status);
}

/* 0: in the folder files can be made, named, renamed and removed, and nothing else. */
static int in_sandbox_but_for_folder(const struct place *p)
{
	int folder = open(p->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err = sandbox_enter(folder), fd;
	char path[64];

	if (err)
		return err == -ENOSYS || err == -EOPNOTSUPP ? NO_LANDLOCK : 1;
	fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || linkat(AT_FDCWD, path, folder, "other", AT_SYMLINK_FOLLOW))
		return 2;
	if (renameat(folder, "other", folder, "third") || unlinkat(folder, "third", 0))
		return 3;
	if (!mkdir(p->other, 0700) || !symlink("/", p->other) || !mkfifo(p->other, 0600))
		return 4;
	if (open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) >= 0 ||
	    !execl("/bin/true", "true", (char *)0))
		return 5;
	return 0;
}

static void a_folder_is_written(void **state)
{
	struct place p;
	int status;

	(void)state;
	make_place(&p);
	status = status_of(in_sandbox_but_for_folder, &p);
	unlink(p.file);
	assert_int_equal(rmdir(p.folder), 0);
	assert_done(status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_only_read),
		cmocka_unit_test(a_folder_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
