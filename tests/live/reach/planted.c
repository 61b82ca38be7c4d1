/* planted.c - a library that plants blocks of twelve shapes in the program that loads it
 *
 * PLANT in the environment is "LOST HELD FOLDER".  When FOLDER/go can be opened, so many blocks in
 * all are lost, by functions lost_SHAPE, and so many held, by held_SHAPE.  What each shape has is
 * written to FOLDER/told: its name, lost and held blocks.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAME	     __attribute__((noinline, noipa))
#define AFTER_CALL() __asm__ volatile("" : : : "memory")
#define AREA	     65536u
#define MOST	     131072

/* Next is the first word, or another one; a word of another node may have bits of its own. */
struct node {
	uintptr_t next, rest[4];
};

/* How the nodes of a list point to each other: to the word @into, with the low bits @tag. */
struct shape_of_list {
	unsigned int into, tag;
};

static char *volatile singles[MOST], *volatile strings[MOST];
static struct node *volatile lists[8];
static __thread struct node *volatile of_thread;
static pthread_key_t key;
static int never[2]; /* a pipe that nobody writes to */
static char folder[256];
static int lost, held;

/* All that is planted comes from here. */
static FRAME void *planted_block(size_t bytes)
{
	static volatile int planted;
	void *block = malloc(bytes);

	if (!block)
		_exit(98);
	memset(block, 0, bytes);
	/* the recorder is to see all of them */
	if (++planted % 256 == 0)
		usleep(500);
	return block;
}

static FRAME struct node *list(int length, struct shape_of_list shape)
{
	struct node *head = NULL;

	while (length--) {
		struct node *node = planted_block(sizeof(*node));

		node->next = head ? (uintptr_t)head + shape.into * 8 + shape.tag : 0;
		head = node;
	}
	return head;
}

static struct node *plain_list(int length)
{
	return list(length, (struct shape_of_list){0, 0});
}

/* What calls have left on the stack and in registers is gone. */
static FRAME void scrub(void)
{
	volatile char room[64 << 10];

	memset((char *)room, 0, sizeof(room));
	__asm__ volatile(
		"xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
		"xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d"
		:
		:
		: "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

static void in_thread(void *(*run)(void *), int *blocks)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, blocks))
		_exit(98);
	pthread_join(thread, NULL);
}

/* single: blocks by themselves */
static FRAME void lost_single(int blocks)
{
	while (blocks--)
		planted_block(47);
	AFTER_CALL();
}

static FRAME void held_single(int blocks)
{
	while (blocks--)
		singles[blocks] = planted_block(47);
	AFTER_CALL();
}

/* list: each node holds the next */
static FRAME void lost_list(int blocks)
{
	plain_list(blocks);
	AFTER_CALL();
}

static FRAME void held_list(int blocks)
{
	lists[0] = plain_list(blocks);
	AFTER_CALL();
}

/* cycle: the last node holds the first */
static struct node *cycle(int blocks)
{
	struct node *head = plain_list(blocks), *last = head;

	while (last->next)
		last = (struct node *)last->next;
	last->next = (uintptr_t)head;
	return head;
}

static FRAME void lost_cycle(int blocks)
{
	cycle(blocks);
	AFTER_CALL();
}

static FRAME void held_cycle(int blocks)
{
	lists[1] = cycle(blocks);
	AFTER_CALL();
}

/* interior: words into the middle alone */
static FRAME void lost_interior(int blocks)
{
	list(blocks, (struct shape_of_list){2, 0});
	AFTER_CALL();
}

static FRAME void held_interior(int blocks)
{
	lists[2] = (struct node *)list(blocks, (struct shape_of_list){2, 0})->rest;
	AFTER_CALL();
}

/* tagged: words with low bits */
static FRAME void lost_tagged(int blocks)
{
	list(blocks, (struct shape_of_list){0, 3});
	AFTER_CALL();
}

static FRAME void held_tagged(int blocks)
{
	struct node *head = list(blocks, (struct shape_of_list){0, 3});

	lists[3] = (struct node *)((uintptr_t)head | 1);
	AFTER_CALL();
}

/* tls: a variable of a thread that has ended, or of one that has not */
static FRAME void *lost_tls(void *blocks)
{
	of_thread = plain_list(*(int *)blocks);
	return NULL;
}

static FRAME void held_tls(int blocks)
{
	of_thread = plain_list(blocks);
	AFTER_CALL();
}

/* key: the same of a key's value */
static FRAME void *lost_key(void *blocks)
{
	pthread_setspecific(key, plain_list(*(int *)blocks));
	return NULL;
}

static FRAME void held_key(int blocks)
{
	pthread_setspecific(key, plain_list(blocks));
	AFTER_CALL();
}

/* register: of a thread that has ended, or of one that waits in read(2) */
static FRAME void *lost_register(void *blocks)
{
	struct node *head = plain_list(*(int *)blocks);

	__asm__ volatile("mov %0, %%r13; xor %0, %0; xor %%r13d, %%r13d" : "+r"(head) : : "r13");
	return head;
}

static FRAME void *held_register(void *blocks)
{
	struct node *head = plain_list(*(int *)blocks);

	*(volatile int *)blocks = -1;
	__asm__ volatile("mov %%rax, %%r13; lea -16384(%%rsp), %%rdi; mov $2048, %%ecx;"
			 "xor %%eax, %%eax; cld; rep stosq; xor %%edx, %%edx; xor %%r8d, %%r8d;"
			 "xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d;"
			 "1: mov %%ebx, %%edi; lea -64(%%rsp), %%rsi; mov $1, %%edx;"
			 "xor %%eax, %%eax; syscall; jmp 1b"
			 : "+a"(head)
			 : "b"(never[0])
			 : "r13", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
	return head;
}

static void *map_area(void)
{
	return mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* sigaltstack: a word on the stack for signals, which was given back or not */
static void **signal_stack(void)
{
	const stack_t stack = {.ss_sp = map_area(), .ss_size = AREA};

	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL))
		_exit(98);
	return stack.ss_sp;
}

static FRAME void lost_sigaltstack(int blocks)
{
	const stack_t none = {.ss_flags = SS_DISABLE};
	void **area = signal_stack();

	area[5000] = plain_list(blocks);
	sigaltstack(&none, NULL);
	munmap(area, AREA);
	AFTER_CALL();
}

static FRAME void held_sigaltstack(int blocks)
{
	signal_stack()[5000] = plain_list(blocks);
	AFTER_CALL();
}

/* dlopen: data of a library that was closed, or was not */
static void *slot_of(const char *name, void ***slot)
{
	char path[320];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	*slot = library ? dlsym(library, "slot") : NULL;
	if (!*slot)
		_exit(98);
	return library;
}

static FRAME void lost_dlopen(int blocks)
{
	void **slot, *library = slot_of("closed.so", &slot);

	*slot = plain_list(blocks);
	dlclose(library);
	AFTER_CALL();
}

static FRAME void held_dlopen(int blocks)
{
	void **slot;

	slot_of("open.so", &slot);
	*slot = plain_list(blocks);
	AFTER_CALL();
}

/* mmap: memory that the program has mapped itself, and given back or not */
static FRAME void lost_mmap(int blocks)
{
	void **area = map_area();

	area[100] = plain_list(blocks);
	munmap(area, AREA);
	AFTER_CALL();
}

static FRAME void held_mmap(int blocks)
{
	((void **)map_area())[100] = plain_list(blocks);
	AFTER_CALL();
}

/* strings: blocks of one to seven bytes */
static FRAME void lost_strings(int blocks)
{
	while (blocks--)
		memset(planted_block(1 + blocks % 7), 'a', blocks % 7);
	AFTER_CALL();
}

static FRAME void held_strings(int blocks)
{
	while (blocks--)
		strings[blocks] = planted_block(1 + blocks % 7);
	AFTER_CALL();
}

static void plant_lost(int blocks)
{
	lost_single(blocks);
	lost_list(blocks);
	lost_cycle(blocks);
	lost_interior(blocks);
	lost_tagged(blocks);
	in_thread(lost_tls, &blocks);
	in_thread(lost_register, &blocks);
	in_thread(lost_key, &blocks);
	lost_sigaltstack(blocks);
	lost_dlopen(blocks);
	lost_mmap(blocks);
	lost_strings(blocks);
}

static void plant_held(int blocks)
{
	static volatile int of_register;
	pthread_t waiting;

	held_single(blocks);
	held_list(blocks);
	held_cycle(blocks);
	held_interior(blocks);
	held_tagged(blocks);
	held_tls(blocks);
	held_key(blocks);
	held_sigaltstack(blocks);
	held_dlopen(blocks);
	held_mmap(blocks);
	held_strings(blocks);
	of_register = blocks;
	if (pthread_create(&waiting, NULL, held_register, (void *)&of_register))
		_exit(98);
	while (of_register >= 0)
		usleep(1000);
}

static void tell(void)
{
	char path[320], text[64];
	int file, length;

	snprintf(path, sizeof(path), "%s/told", folder);
	file = open(path, O_WRONLY);
	length = snprintf(text, sizeof(text), "%d %d\n", lost / 12, held / 12);
	if (file < 0 || write(file, text, (size_t)length) != length)
		_exit(98);
	close(file);
}

static void *plant(void *arg)
{
	char path[320], byte;
	int go;

	(void)arg;
	snprintf(path, sizeof(path), "%s/go", folder);
	go = open(path, O_RDONLY);
	plant_lost(lost / 12);
	scrub();
	plant_held(held / 12);
	scrub();
	tell();
	close(go);
	for (;;)
		(void)!read(never[0], &byte, 1);
	return NULL;
}

/* Whoever loads it. */
__attribute__((constructor)) static void begin(void)
{
	const char *wanted = getenv("PLANT"); /* servers write over their environment, later */
	pthread_t thread;

	if (!wanted)
		return;
	if (sscanf(wanted, "%d %d %255s", &lost, &held, folder) != 3 || held / 12 > MOST ||
	    pipe(never) || pthread_key_create(&key, NULL) ||
	    pthread_create(&thread, NULL, plant, NULL))
		_exit(98);
}

/* The sqlite3 shell calls it. */
int sqlite3_planted_init(void *db, char **error, const void *api);

int sqlite3_planted_init(void *db, char **error, const void *api)
{
	(void)db;
	(void)error;
	(void)api;
	return 0;
}
