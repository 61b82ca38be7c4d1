/* kernel_target.c - has the kernel allocate what it is told, and says when that is done
 *
 * Commands are lines on stdin, each answered by "done" on stdout:
 *   make    create the pipes, eventfds, epoll instances, sockets and files in memory, as many as
 *           are listed below
 *   watch   have each epoll instance watch each eventfd
 *   percpu  create an array for eBPF of which each element is memory for each CPU
 *   close   close all of them
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../say.h"

/* Primes, so that no number is the sum of others; tests/kerneltest.py knows them. */
#define PIPES	211
#define EVENTS	223
#define EPOLLS	97
#define SOCKETS 61
#define FILES	53
#define PERCPU	307

#define MOST 1000 /* above all descriptors */

static int all[MOST], events[EVENTS], epolls[EPOLLS];
static int nr;

static int keep(int fd)
{
	if (fd < 0 || nr == MOST)
		_exit(98);
	return all[nr++] = fd;
}

static void make_all(void)
{
	for (int i = 0; i < PIPES; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC))
			_exit(97);
		keep(ends[0]);
		keep(ends[1]);
	}
	for (int i = 0; i < EVENTS; i++)
		events[i] = keep(eventfd(0, EFD_CLOEXEC));
	for (int i = 0; i < EPOLLS; i++)
		epolls[i] = keep(epoll_create1(EPOLL_CLOEXEC));
	for (int i = 0; i < SOCKETS; i++)
		keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	for (int i = 0; i < FILES; i++)
		keep(memfd_create("target", MFD_CLOEXEC));
}

static void watch_all(void)
{
	struct epoll_event wanted = {.events = EPOLLIN};

	for (int i = 0; i < EPOLLS; i++)
		for (int k = 0; k < EVENTS; k++)
			if (epoll_ctl(epolls[i], EPOLL_CTL_ADD, events[k], &wanted))
				_exit(96);
}

static void make_percpu(void)
{
	union bpf_attr array = {.map_type = BPF_MAP_TYPE_PERCPU_ARRAY,
				.key_size = sizeof(__u32),
				.value_size = 24,
				.max_entries = PERCPU};

	keep((int)syscall(SYS_bpf, BPF_MAP_CREATE, &array, sizeof(array)));
}

int main(void)
{
	const struct rlimit limit = {.rlim_cur = MOST + 1, .rlim_max = MOST + 1};
	char line[64];

	setvbuf(stdin, NULL, _IONBF, 0);
	/* Room for all descriptors from the beginning on, so that no call of those above has to make
	 * the table of descriptors larger. */
	if (setrlimit(RLIMIT_NOFILE, &limit) || dup2(STDIN_FILENO, MOST) != MOST)
		_exit(99);
	close(MOST);
	say("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "make\n"))
			make_all();
		if (!strcmp(line, "watch\n"))
			watch_all();
		if (!strcmp(line, "percpu\n"))
			make_percpu();
		while (!strcmp(line, "close\n") && nr)
			close(all[--nr]);
		say("done\n");
	}
	return 0;
}
