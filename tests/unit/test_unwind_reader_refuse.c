/* test_unwind_reader_refuse.c - processes that end, or must not be read: an error, and no harm */
#include <grp.h>
#include <pwd.h>
#include <sys/ptrace.h>

#include "tests/unit/reader_target.h"

/* The result of an attach that must fail; *denied says why. */
static int refused(pid_t pid, uint32_t flags, enum dwunw_denied *denied)
{
	const struct dwunw_stack_reader_opts opts = {.flags = flags, .denied = denied};
	struct dwunw_stack_reader *reader;
	int err = dwunw_stack_reader_attach(pid, &opts, &reader);

	assert_null(reader);
	return err;
}

static void sleep_for_ever(void)
{
	target_self->ready = 1;
	for (;;)
		pause();
}

static struct target start_sleeper(void)
{
	struct target t = target_start(sleep_for_ever);

	while (!t.shared->ready)
		target_nap(1000);
	target_nap(2000);
	return t;
}

/* What @fn returns in a child process of its own, between 0 and 255. */
static int in_child(int (*fn)(pid_t pid), pid_t pid)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(fn(pid));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* It sleeps again; where all CPUs are busy it may wait for one before that. */
static void assert_sleeps(pid_t pid)
{
	for (int tries = 0; target_state(pid) == 'R' && tries < 60000; tries++)
		target_nap(1000);
	assert_int_equal(target_state(pid), 'S');
}

static void assert_unharmed(const struct target *t)
{
	assert_sleeps(t->pid);
	assert_int_equal(target_tracer(t->pid), 0);
}

/* A body: threads, and an end after a random time. */
static void end_by_itself(void)
{
	pthread_t thread;

	target_pipe[0] = -1;
	for (uintptr_t i = WAIT_SLEEP; i <= WAIT_POLL; i++)
		pthread_create(&thread, NULL, target_thread_main, (void *)i);
	pthread_create(&thread, NULL, target_thread_main, (void *)(uintptr_t)WAIT_NOTHING);
	target_self->ready = 1;
	target_nap((unsigned int)getpid() * 7919u % 12000u);
	_exit(7);
}

static int seen_or_gone(void *arg, int err, const struct dwunw_stack_copy *copy)
{
	(void)arg;
	(void)copy;
	assert_true(err == 0 || err == -ETIMEDOUT);
	return 0;
}

/* Read the target until it has ended; returns how often that was done. */
static int read_to_the_end(const struct target *t)
{
	struct dwunw_stack_reader *reader;
	enum dwunw_denied denied;
	const struct dwunw_stack_reader_opts opts = {.denied = &denied};
	int err = dwunw_stack_reader_attach(t->pid, &opts, &reader), nr = 0;

	if (err == DWUNW_ERR_ATTACH_DENIED)
		assert_int_equal(denied, DWUNW_DENIED_ZOMBIE);
	else if (err != DWUNW_ERR_GONE)
		assert_int_equal(err, 0);
	while (!err) {
		err = dwunw_stack_reader_read_all(reader, seen_or_gone, NULL);
		nr++;
	}
	assert_true(err == DWUNW_ERR_GONE || err == DWUNW_ERR_ATTACH_DENIED);
	dwunw_stack_reader_detach(reader);
	return nr;
}

static void a_process_that_ends_while_it_is_read_is_gone_and_its_status_its_parents(void **state)
{
	int files = target_open_files(), reads = 0;

	(void)state;
	for (int run = 0; run < 200; run++) {
		struct target t = target_start(end_by_itself);
		bool killed = run % 2;
		pid_t killer = -1;
		int status;

		while (!t.shared->ready)
			sched_yield();
		if (killed)
			killer = fork();
		if (killed && !killer) {
			target_nap((unsigned int)run * 60);
			kill(t.pid, SIGKILL);
			_exit(0);
		}
		reads += read_to_the_end(&t);
		if (killed)
			assert_int_equal(waitpid(killer, &status, 0), killer);
		status = target_end(&t);
		if (!killed)
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		else
			assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
				    WEXITSTATUS(status) == 7);
	}
	print_message("# %d reads in 200 runs\n", reads);
	assert_true(reads > 100);
	assert_int_equal(target_open_files(), files);
}

static void a_process_under_a_tracer_is_refused_and_stays_with_it(void **state)
{
	const struct dwunw_stack_reader_opts opts = {.flags = DWUNW_READER_NO_STOP};
	struct target t = start_sleeper();
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;
	enum dwunw_denied denied;
	int files = target_open_files(), err;

	(void)state;
	assert_int_equal(ptrace(PTRACE_SEIZE, t.pid, NULL, NULL), 0);
	err = refused(t.pid, 0, &denied);
	assert_int_equal(err, DWUNW_ERR_ATTACH_DENIED);
	assert_int_equal(denied, DWUNW_DENIED_TRACED);
	assert_sleeps(t.pid);
	assert_int_equal(target_tracer(t.pid), getpid());
	assert_int_equal(target_open_files(), files);
	/* What stops nothing need not be refused. */
	assert_int_equal(dwunw_stack_reader_attach(t.pid, &opts, &reader), 0);
	assert_int_equal(dwunw_stack_reader_read(reader, t.pid, &copy), 0);
	assert_int_equal(copy.flags, DWUNW_COPY_NOT_STOPPED);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

static void a_tracer_that_comes_after_attach_is_told_of(void **state)
{
	struct target t = start_sleeper();
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;

	(void)state;
	assert_int_equal(dwunw_stack_reader_attach(t.pid, NULL, &reader), 0);
	assert_int_equal(ptrace(PTRACE_SEIZE, t.pid, NULL, NULL), 0);
	assert_int_equal(dwunw_stack_reader_read(reader, t.pid, &copy), DWUNW_ERR_ATTACH_DENIED);
	assert_int_equal(copy.denied, DWUNW_DENIED_TRACED);
	assert_int_equal(copy.stack.len, 0);
	assert_sleeps(t.pid);
	assert_int_equal(target_tracer(t.pid), getpid());
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

static int become_nobody(void)
{
	struct passwd *nobody = getpwnam("nobody");

	if (!nobody || setgroups(0, NULL) || setgid(nobody->pw_gid) || setuid(nobody->pw_uid))
		return -1;
	return 0;
}

static int attach_as_nobody(pid_t pid)
{
	enum dwunw_denied denied;

	if (become_nobody())
		return 100;
	if (refused(pid, 0, &denied) != DWUNW_ERR_ATTACH_DENIED)
		return 101;
	return (int)denied;
}

static void a_process_of_another_user_is_refused(void **state)
{
	struct target t = start_sleeper();

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(in_child(attach_as_nobody, t.pid), DWUNW_DENIED_OTHER_USER);
	assert_unharmed(&t);
	target_end(&t);
}

static void be_nobody_and_not_dumpable(void)
{
	become_nobody();
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user undid it */
	prctl(PR_SET_DUMPABLE, 0);
	sleep_for_ever();
}

static void a_process_that_is_not_dumpable_is_refused(void **state)
{
	struct target t;

	(void)state;
	if (geteuid())
		skip();
	t = target_start(be_nobody_and_not_dumpable);
	while (!t.shared->ready)
		target_nap(1000);
	target_nap(2000);
	assert_int_equal(in_child(attach_as_nobody, t.pid), DWUNW_DENIED_NOT_DUMPABLE);
	assert_unharmed(&t);
	target_end(&t);
}

static void a_zombie_is_refused_and_left_to_its_parent(void **state)
{
	struct target t = start_sleeper();
	enum dwunw_denied denied;
	int err;

	(void)state;
	kill(t.pid, SIGKILL);
	while (target_state(t.pid) != 'Z')
		target_nap(1000);
	err = refused(t.pid, 0, &denied);
	assert_int_equal(err, DWUNW_ERR_ATTACH_DENIED);
	assert_int_equal(denied, DWUNW_DENIED_ZOMBIE);
	assert_int_equal(target_end(&t), SIGKILL);
}

static void a_thread_of_the_kernel_is_refused(void **state)
{
	char name[16] = "";
	enum dwunw_denied denied;
	FILE *f = fopen("/proc/2/comm", "re");
	int err;

	(void)state;
	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	if (geteuid() || strcmp(name, "kthreadd\n"))
		skip();
	err = refused(2, 0, &denied);
	assert_int_equal(err, DWUNW_ERR_ATTACH_DENIED);
	assert_int_equal(denied, DWUNW_DENIED_KERNEL_THREAD);
}

static void what_is_no_process_is_refused(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader_opts opts = {.start_time = 1};
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;
	enum dwunw_denied denied;
	pid_t pid = t.pid;

	(void)state;
	assert_int_equal(refused(0, 0, &denied), -EINVAL);
	assert_int_equal(refused(getpid(), 0, &denied), -EINVAL);
	assert_int_equal(refused(t.shared->thread[0].tid, 0, &denied), -EINVAL);
	assert_int_equal(dwunw_stack_reader_attach(pid, &opts, &reader), DWUNW_ERR_GONE);
	assert_int_equal(dwunw_stack_reader_attach(pid, NULL, &reader), 0);
	assert_int_equal(dwunw_stack_reader_read(reader, getpid(), &copy), DWUNW_ERR_GONE);
	assert_int_equal(dwunw_stack_reader_read(reader, -1, &copy), DWUNW_ERR_GONE);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
	assert_int_equal(refused(pid, 0, &denied), DWUNW_ERR_GONE);
	assert_int_equal(denied, DWUNW_DENIED_NOT);
}

static int attach_busy(pid_t pid)
{
	enum dwunw_denied denied;

	return refused(pid, 0, &denied) == -EBUSY;
}

static void a_second_reader_is_refused_here_and_in_another_process(void **state)
{
	struct target t = start_sleeper();
	struct dwunw_stack_reader *reader;

	(void)state;
	assert_int_equal(dwunw_stack_reader_attach(t.pid, NULL, &reader), 0);
	assert_true(attach_busy(t.pid));
	assert_int_equal(in_child(attach_busy, t.pid), 1);
	dwunw_stack_reader_detach(reader);
	assert_int_equal(dwunw_stack_reader_attach(t.pid, NULL, &reader), 0);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

static int ignore_thread(void *arg, int err, const struct dwunw_stack_copy *copy)
{
	(void)arg;
	(void)copy;
	return err && err != -EAGAIN;
}

static int read_for_ever(pid_t pid)
{
	const struct dwunw_stack_reader_opts opts = {.flags = DWUNW_READER_ALWAYS_STOP};
	struct dwunw_stack_reader *reader;

	if (dwunw_stack_reader_attach(pid, &opts, &reader))
		return 1;
	while (!dwunw_stack_reader_read_all(reader, ignore_thread, NULL))
		;
	return 2;
}

static void the_target_goes_on_when_its_reader_is_killed(void **state)
{
	struct target t = target_start_waits();

	(void)state;
	for (int run = 0; run < 50; run++) {
		pid_t reader = fork();
		unsigned long before;
		int status;

		if (!reader)
			_exit(read_for_ever(t.pid));
		target_nap(3000 + (unsigned int)run * 37);
		kill(reader, SIGKILL);
		assert_int_equal(waitpid(reader, &status, 0), reader);
		assert_true(WIFSIGNALED(status));
		before = t.shared->thread[WAIT_NOTHING].rounds;
		target_nap(5000);
		for (int i = 0; i < 100 && t.shared->thread[WAIT_NOTHING].rounds == before; i++)
			target_nap(5000);
		assert_true(t.shared->thread[WAIT_NOTHING].rounds > before);
		assert_int_equal(target_tracer(t.pid), 0);
		for (int i = 0; i < NR_WAITS; i++)
			assert_int_equal(target_tracer(t.shared->thread[i].tid), 0);
		assert_unharmed(&t);
	}
	target_end(&t);
}

static void every_refusal_has_its_sentence(void **state)
{
	(void)state;
	for (int i = 0; i <= DWUNW_DENIED_NR; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(dwunw_denied_text((enum dwunw_denied)i),
						dwunw_denied_text((enum dwunw_denied)j));
	assert_string_not_equal(dwunw_strerror(DWUNW_ERR_ATTACH_DENIED),
				dwunw_strerror(DWUNW_ERR_GONE));
	assert_string_not_equal(dwunw_strerror(DWUNW_ERR_GONE), dwunw_strerror(-9999));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_that_ends_while_it_is_read_is_gone_and_its_status_its_parents),
		cmocka_unit_test(a_process_under_a_tracer_is_refused_and_stays_with_it),
		cmocka_unit_test(a_tracer_that_comes_after_attach_is_told_of),
		cmocka_unit_test(a_process_of_another_user_is_refused),
		cmocka_unit_test(a_process_that_is_not_dumpable_is_refused),
		cmocka_unit_test(a_zombie_is_refused_and_left_to_its_parent),
		cmocka_unit_test(a_thread_of_the_kernel_is_refused),
		cmocka_unit_test(what_is_no_process_is_refused),
		cmocka_unit_test(a_second_reader_is_refused_here_and_in_another_process),
		cmocka_unit_test(the_target_goes_on_when_its_reader_is_killed),
		cmocka_unit_test(every_refusal_has_its_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
