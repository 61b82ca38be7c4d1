/* lsan_processes.cc - cases of processes and signals, of when it is asked, and of what it is told
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lsan_cases.h"

static bool turned_off;

const char *__lsan_default_suppressions(void)
{
	return "leak:suppressed_by_default\n";
}

int __lsan_is_turned_off(void)
{
	return turned_off;
}

static __thread void *of_thread;
static void *volatile global;

FRAME void fork_and_leak(void)
{
	pid_t child = fork();

	if (!child) {
		for (int i = 0; i < 10; i++)
			lose(1117);
		return;
	}
	tell("lost", 10, 11170);
	waitpid(child, NULL, 0);
}

FRAME void *exit_thread(void *)
{
	exit(0);
}

FRAME void fork_threaded(void)
{
	pthread_t thread;
	pid_t child;

	of_thread = get(1123);
	keep(&of_thread);
	child = fork();
	if (!child) {
		start(&thread, exit_thread, NULL);
		pthread_join(thread, NULL);
	}
	waitpid(child, NULL, 0);
}

static void do_nothing(int)
{
}

FRAME void signal_during_stop_the_world(void)
{
	struct sigaction action = {};
	pid_t parent = getpid(), child;

	action.sa_handler = do_nothing;
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGCHLD, &action, NULL);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent && !kill(parent, SIGCHLD) && !kill(parent, SIGPROF))
			;
		_exit(0);
	}
	usleep(10000);
	lose(1129);
	tell("lost", 1, 1129);
}

FRAME void leak_check_segv(void)
{
	char *block = (char *)get(10 << 20);

	block = (char *)(((uintptr_t)block + 4095) & ~4095ul);
	if (mprotect(block, 16384, PROT_NONE))
		_exit(98);
	lose(1151);
	tell("lost", 2, (10 << 20) + 1151);
}

FRAME void recoverable_leak_check(void)
{
	lose(1153);
	global = get(1163);
	scrub();
	if (__lsan_do_recoverable_leak_check)
		__lsan_do_recoverable_leak_check();
	global = NULL;
	tell("lost", 2, 1153 + 1163);
}

struct leaky_global {
	void *block;

	leaky_global() : block(NULL)
	{
	}
	~leaky_global()
	{
		block = NULL;
		keep(this);
	}
};

static leaky_global leaky;

FRAME void do_leak_check_override(void)
{
	leaky.block = get(1171);
	lose(1181);
	tell("lost", 2, 1171 + 1181);
}

FRAME void suppressed_by_default(void)
{
	lose(1187);
	AFTER_CALL();
}

FRAME void suppressions_default(void)
{
	suppressed_by_default();
	lose(1193);
	tell("lost", 1, 1193);
}

FRAME void link_turned_off(void)
{
	turned_off = true;
	lose(1201);
	tell("lost", 1, 1201);
}

FRAME void disabler(void)
{
	void **block;

	if (__lsan_disable)
		__lsan_disable();
	block = (void **)get(sizeof(void *));
	if (__lsan_enable)
		__lsan_enable();
	*block = get(1213);
	lose(1217);
	tell("lost", 2, 8 + 1217);
	tell("lost-with", 1, 1213);
}

FRAME void ignore_object(void)
{
	void **block = (void **)get(sizeof(void *));

	*block = get(1223);
	lose(1229);
	if (__lsan_ignore_object)
		__lsan_ignore_object(block);
	tell("lost", 2, 8 + 1229);
	tell("lost-with", 1, 1223);
}

const struct lsan_case process_cases[] = {
	CASE(fork_and_leak),
	CASE(fork_threaded),
	CASE(signal_during_stop_the_world),
	CASE(leak_check_segv),
	CASE(recoverable_leak_check),
	CASE(do_leak_check_override),
	CASE(suppressions_default),
	CASE(link_turned_off),
	CASE(disabler),
	CASE(ignore_object),
	{NULL, NULL},
};
