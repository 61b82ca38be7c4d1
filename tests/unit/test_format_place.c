/* test_format_place.c - what a signal handler may remove while a file is made */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/place.h"

#define MOST_STEPS 3000000

static char folder[] = "/tmp/mleak-place-XXXXXX";
static struct mlk_place *place; /* which the child shares with us */

static int make_folder(void **state)
{
	(void)state;
	place = mmap(NULL, sizeof(*place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return place == MAP_FAILED || !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	munmap(place, sizeof(*place));
	return rmdir(folder);
}

static char *path_of(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return path;
}

/* In a child that is traced: replace the file at @path by one with the content "new". */
static int replace_file(const char *path)
{
	struct stat instead;
	int err;

	if (stat(path, &instead) || ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
		return 1;
	err = mlk_place_open(place, path, &instead);
	if (err || write(place->fd, "new", 3) != 3)
		return 2;
	err = mlk_place_take(place, &instead);
	mlk_place_close(place);
	return err ? 3 : 0;
}

/* Is what a handler would remove now a file of the process @pid? */
static bool is_of(pid_t pid, const char *name)
{
	char own[NAME_MAX + 1];

	snprintf(own, sizeof(own), "%s.part%d", name, (int)pid);
	return !place->part[0] || !strcmp(place->part, own);
}

/* Step through the replacing of the file @name.  Sets *@named to whether the new one had a name of
 * its own meanwhile. */
static void step_through(const char *name, bool *named)
{
	char *path = path_of(name);
	FILE *old = fopen(path, "w");
	int status = 0;
	pid_t pid;

	assert_non_null(old);
	assert_int_equal(fclose(old), 0);
	*place = (struct mlk_place){.fd = -1, .dir = -1};
	*named = false;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(replace_file(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL), 0);
	for (int i = 0; i < MOST_STEPS && WIFSTOPPED(status); i++) {
		assert_true(is_of(pid, name));
		*named |= place->part[0] != '\0';
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(unlink(path), 0);
	free(path);
}

static void a_handler_removes_nothing_else(void **state)
{
	bool named;

	(void)state;
	step_through("t.mlk", &named);
	assert_true(named);
	step_through("a-trace-with-a-name-that-is-copied-in-words.mlk", &named);
	assert_true(named);
}

static void a_closed_place_has_no_name(void **state)
{
	char *path = path_of("x.mlk");

	(void)state;
	assert_int_equal(mlk_place_open(place, path, NULL), 0);
	strcpy(place->part, "x.mlk.part"); /* as if it had no other */
	mlk_place_close(place);
	assert_string_equal(place->part, "");
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_removes_nothing_else),
		cmocka_unit_test(a_closed_place_has_no_name),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
