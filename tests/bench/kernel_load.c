/* kernel_load.c - messages to and fro, between two processes: by pipes or sockets
 *
 * usage: kernel_load pipe|socket ROUNDS
 *
 * A socket's message is one byte, for which the kernel allocates a buffer.  A pipe keeps a page or
 * two of those that were read, and has them filled again: a byte to and fro allocates nothing.  So
 * a pipe's message has some pages, and pipes and the other process are made anew from time to time.
 *
 * Both processes are on one CPU: to wake another one takes several times as much CPU time as the
 * rest of a round, and whether it happens differs from run to run.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIPE_BYTES 32768
#define RENEW	   100 /* rounds by the same pipes or sockets */

static char message[PIPE_BYTES];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void open_pair(int is_pipe, int to[2])
{
	if (is_pipe ? pipe(to) : socketpair(AF_UNIX, SOCK_SEQPACKET, 0, to))
		fail("kernel_load: pipe or socket");
}

static void send_message(int fd, size_t bytes)
{
	if (write(fd, message, bytes) != (ssize_t)bytes)
		fail("kernel_load: write");
}

static void receive_message(int fd, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t n = read(fd, message, bytes - got);

		if (n <= 0)
			fail("kernel_load: read");
		got += (size_t)n;
	}
}

static void exchange(int is_pipe, long rounds)
{
	size_t bytes = is_pipe ? PIPE_BYTES : 1;
	int there[2], back[2];
	pid_t child;

	open_pair(is_pipe, there);
	open_pair(is_pipe, back);
	child = fork();
	if (child < 0)
		fail("kernel_load: fork");
	for (long i = 0; i < rounds; i++) {
		if (child)
			send_message(there[1], bytes);
		receive_message(child ? back[0] : there[0], bytes);
		if (!child)
			send_message(back[1], bytes);
	}
	if (!child)
		_exit(0);
	if (wait(NULL) < 0)
		fail("kernel_load: wait");
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

static void stay_on_cpu(void)
{
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET(cpu < 0 ? 0 : cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("kernel_load: sched_setaffinity");
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 0;

	if (rounds < 1)
		return 2;
	stay_on_cpu();
	for (; rounds > 0; rounds -= RENEW)
		exchange(!strcmp(argv[1], "pipe"), rounds < RENEW ? rounds : RENEW);
	return 0;
}
