/* kernel_user_target.c - has the kernel make eventfds, by two ways through its functions
 *
 * Commands are lines on stdin, each answered by "done" on stdout:
 *   make    BY_A eventfds by way a, BY_B by way b
 *   thread  the same in another thread
 *   child   the same in another process, which has the same descriptors and ends then
 *   exec    run another program in this process, with the descriptors
 *   many    MANY eventfds by way a
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../say.h"

/* Primes, which tests/live/test_kernel_user_stacks.py knows. */
#define BY_A 223
#define BY_B 97
#define MANY 10007

#define CHILD_STACK (1 << 18)

/* The recursion is no loop, and each call has a frame. */
__attribute__((noipa)) static int make_one(volatile int deep)
{
	int fd;

	if (deep > 0) {
		fd = make_one(deep - 1);
		deep++;
		return fd;
	}
	fd = eventfd(0, 0);
	if (fd < 0)
		_exit(98);
	return fd;
}

__attribute__((noipa)) static void by_a(int nr)
{
	for (int i = 0; i < nr; i++)
		make_one(3);
}

__attribute__((noipa)) static void by_b(int nr)
{
	for (int i = 0; i < nr; i++)
		make_one(1);
}

__attribute__((noipa)) static void *make_both(void *arg)
{
	by_a(BY_A);
	by_b(BY_B);
	return arg;
}

static int in_child(void *arg)
{
	make_both(arg);
	_exit(0);
}

/* A thread of its own process. */
static void run_child(void)
{
	char *stack = malloc(CHILD_STACK);
	int status = 1;
	pid_t pid = stack ? clone(in_child, stack + CHILD_STACK, CLONE_FILES | SIGCHLD, NULL) : -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		_exit(97);
	free(stack);
}

static void run_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make_both, NULL) || pthread_join(thread, NULL))
		_exit(96);
}

static void do_command(const char *command, char *self)
{
	char *argv[] = {self, NULL};

	if (!strcmp(command, "make"))
		make_both(NULL);
	else if (!strcmp(command, "thread"))
		run_thread();
	else if (!strcmp(command, "child"))
		run_child();
	else if (!strcmp(command, "many"))
		by_a(MANY);
	else if (!strcmp(command, "exec"))
		execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	const struct rlimit files = {.rlim_cur = 4 * MANY, .rlim_max = 4 * MANY};
	char command[64];

	(void)argc;
	setrlimit(RLIMIT_NOFILE, &files);
	say("ready\n");
	while (fgets(command, sizeof(command), stdin)) {
		command[strcspn(command, "\n")] = '\0';
		do_command(command, argv[0]);
		say("done\n");
	}
	return 0;
}
