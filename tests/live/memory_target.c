/* memory_target.c - takes memory as it is told, and says what the kernel thinks of it
 *
 * Commands are lines "COMMAND MIB" on stdin, each answered by the numbers of /proc/self/statm:
 *   heap     malloc, and write to it
 *   file     map a file of that size in the working directory, and read all of it
 *   shared   map memory that children would share, and write to it
 *   reserve  map memory that nothing may touch
 *   exec     run the program again
 *   end      end the main thread; the one that takes commands goes on
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../say.h"

#define PAGE 4096u

static sem_t end;

static char *map(size_t bytes, int protection, int flags, int fd)
{
	char *at = mmap(NULL, bytes, protection, flags, fd, 0);

	if (at == MAP_FAILED)
		_exit(98);
	return at;
}

static void map_file(size_t bytes)
{
	int fd = open("mapped", O_RDWR | O_CREAT, 0600);
	volatile char sum = 0;
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		_exit(97);
	at = map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	memset(at, 1, bytes); /* holes have no pages */
	for (size_t i = 0; i < bytes; i += PAGE)
		sum ^= at[i];
}

static void do_command(const char *command, size_t bytes, char **argv)
{
	if (!strcmp(command, "heap"))
		memset(malloc(bytes), 1, bytes);
	else if (!strcmp(command, "file"))
		map_file(bytes);
	else if (!strcmp(command, "shared"))
		memset(map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1), 1,
		       bytes);
	else if (!strcmp(command, "reserve"))
		map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	else if (!strcmp(command, "end"))
		sem_post(&end);
	else if (!strcmp(command, "exec"))
		execv(argv[0], argv);
}

/* The process's own numbers: /proc/self/statm of an ended main thread says nothing. */
static void say_statm(void)
{
	char text[200];
	ssize_t n;
	int fd = open("/proc/thread-self/statm", O_RDONLY);

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	say("%s", n > 0 ? text : "?\n");
}

static void *take_commands(void *argv)
{
	char line[100], command[40];
	int mib, len;

	for (;;) {
		len = 0;
		while (len < (int)sizeof(line) - 1 && read(0, line + len, 1) == 1 &&
		       line[len] != '\n')
			len++;
		line[len] = '\0';
		if (sscanf(line, "%39s %d", command, &mib) != 2)
			exit(0);
		do_command(command, (size_t)mib << 20, argv);
		say_statm();
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argc;
	sem_init(&end, 0, 0);
	if (pthread_create(&thread, NULL, take_commands, argv))
		return 96;
	say("ready\n");
	while (sem_wait(&end))
		;
	syscall(SYS_exit, 0); /* of this thread alone */
}
