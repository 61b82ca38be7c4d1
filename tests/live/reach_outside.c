/* reach_outside.c - blocks to which words outside of ordinary memory point, or none
 *
 * Says on stdout how many blocks of each function have which verdict, then "ready", and waits until
 * stdin ends.  The argument names a library with a slot for a pointer.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../samples/sample.h"

/* Zero what earlier calls have left below the stack pointer; rcx and rdi are used. */
#define WIPE                                                                                       \
	"lea -16384(%%rsp), %%rdi; mov $2032, %%ecx; xor %%eax, %%eax; cld; rep stosq;"            \
	"xor %%edx, %%edx; xor %%esi, %%esi; xor %%r8d, %%r8d; xor %%r9d, %%r9d;"                  \
	"xor %%r10d, %%r10d; xor %%r11d, %%r11d;"
#define WIPED "rcx", "rdi", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc"

static volatile int spins, over, tid, waits_for;

/* A list: a pointer to it holds its blocks. */
static void *list(int length)
{
	void **head = NULL;

	while (length--) {
		void **node = calloc(1, LEAK_BYTES);

		keep(node);
		*node = head;
		head = node;
	}
	return head;
}

/* The pointer is in r12 alone while the thread runs. */
FRAME void *held_by_running(void *arg)
{
	void *head = list(17);

	__asm__ volatile("mov %0, %%r12;" WIPE
			 "xor %%eax, %%eax; movl $1, spins(%%rip);"
			 "1: pause; cmpl $0, over(%%rip); je 1b; mov %%r12, %0"
			 : "+a"(head)
			 :
			 : "r12", WIPED);
	return head ? arg : NULL;
}

/* The pointer is in r13 alone while the thread waits in a system call. */
FRAME void *held_by_waiting(void *arg)
{
	void *head;

	tid = (int)syscall(SYS_gettid);
	head = list(19);
	__asm__ volatile("mov %0, %%r13;" WIPE
			 "mov waits_for(%%rip), %%edi; lea -64(%%rsp), %%rsi; mov $1, %%edx;"
			 "xor %%eax, %%eax; syscall; mov %%r13, %0"
			 : "+a"(head)
			 :
			 : "r13", WIPED);
	return head ? arg : NULL;
}

/* The kernel alone has the pointer. */
FRAME void held_by_epoll(void)
{
	int epoll = epoll_create1(0), event = eventfd(0, 0);
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = list(23)}};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, event, &ev))
		_exit(98);
	memset(&ev, 0, sizeof(ev));
	keep(&ev);
	AFTER_CALL();
}

FRAME void held_by_timer(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;

	ev.sigev_value.sival_ptr = list(29);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer))
		_exit(98);
	memset(&ev, 0, sizeof(ev));
	keep(&ev);
	AFTER_CALL();
}

FRAME void held_by_signal_stack(void)
{
	void **area = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t stack = {.ss_sp = area, .ss_size = 65536};

	area[5000] = list(31);
	if (sigaltstack(&stack, NULL))
		_exit(98);
	AFTER_CALL();
}

FRAME void held_by_library(void **slot)
{
	*slot = list(37);
	AFTER_CALL();
}

FRAME void lost_list(void)
{
	keep(list(41));
	AFTER_CALL();
}

static FRAME void plant(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);
	void **slot = library ? dlsym(library, "slot") : NULL;

	if (!slot)
		_exit(98);
	held_by_epoll();
	held_by_timer();
	held_by_signal_stack();
	held_by_library(slot);
	lost_list();
	AFTER_CALL();
}

static FRAME void scrub(void)
{
	volatile char room[192 << 10];

	memset((char *)room, 0, sizeof(room));
	__asm__ volatile(WIPE : : : "rax", WIPED);
}

/* Does the thread tid wait in read(2)? */
static int waits(void)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	file = tid ? fopen(path, "r") : NULL;
	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	return !strncmp(text, "0 ", 2);
}

int main(int argc, char **argv)
{
	pthread_t running, waiting;
	int ends[2];
	char byte;

	if (argc != 2 || pipe(ends))
		return 98;
	waits_for = ends[0];
	plant(argv[1]);
	if (pthread_create(&running, NULL, held_by_running, NULL) ||
	    pthread_create(&waiting, NULL, held_by_waiting, NULL))
		return 98;
	scrub();
	while (!spins || !waits())
		usleep(1000);
	say("held_by_running held 17\nheld_by_waiting held 19\nheld_by_epoll held 23\n");
	say("held_by_timer %s 29\n", access("/proc/self/timers", F_OK) ? "lost" : "held");
	say("held_by_signal_stack held 31\nheld_by_signal_stack none 1\nheld_by_library held 37\n");
	say("lost_list lost 1\nlost_list lost-with 40\nready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = 1;
	close(ends[1]);
	pthread_join(running, NULL);
	pthread_join(waiting, NULL);
	return 0;
}
