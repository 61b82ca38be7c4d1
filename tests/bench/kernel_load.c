/* kernel_load.c - one byte to and fro, between two processes: by a pipe or a socket
 *
 * usage: kernel_load pipe|socket ROUNDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void open_pair(const char *kind, int to[2])
{
	if (!strcmp(kind, "pipe") ? pipe(to) : socketpair(AF_UNIX, SOCK_SEQPACKET, 0, to)) {
		perror(kind);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	long rounds = argc > 2 ? atol(argv[2]) : 0;
	char byte = 0;

	if (rounds < 1)
		return 2;
	open_pair(argv[1], there);
	open_pair(argv[1], back);
	if (!fork()) {
		for (long i = 0; i < rounds; i++)
			if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (long i = 0; i < rounds; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 1;
	return wait(NULL) < 0;
}
