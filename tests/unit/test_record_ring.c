/* test_record_ring.c - two rings are one order: what was over before another began comes before it
 *
 * The rings lie in files of memory, in the layout of the kernel's.  Writers fill them as bpf/send.h
 * does: an event that finds no room in the first ring notes how far that has come, takes room in
 * the second one, and is complete later; at each of these steps another writer may go on, or the
 * reader; and between the reader's looks at the two rings, the writers.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include "bpf/event.h"
#include "record/probe/ring.h"

#define PAGE	   4096ul
#define FRONT	   4096ul
#define SECOND	   16384ul
#define MAX_EVENTS 20000
#define WRITERS	   7

struct shared {
	int fd;
	size_t size;
	uint8_t *map;
};

/* An event as its writer knows it; times are the world's steps. */
struct truth {
	unsigned long began, done; /* done 0: not yet */
	unsigned long seen;	   /* in which place event() was given it; 0: never */
	bool discarded, dropped;
};

enum state { IDLE, ASKED, BUSY };

struct writer {
	enum state state;
	uint32_t event, front_at;
	size_t size;	  /* of the event */
	uint32_t *header; /* when BUSY */
};

struct world {
	struct shared first, second;
	struct ring *ring;
	struct writer writers[WRITERS];
	struct truth truth[MAX_EVENTS];
	uint32_t nr;
	unsigned long step, seen, in_second;
	bool discards; /* now and then */
	long patience; /* how many events are taken until event() wants no more */
};

/* A ring that has been in use up to @position. */
static struct ring_map open_shared(struct shared *s, const char *name, size_t size,
				   unsigned long position)
{
	s->size = size;
	s->fd = memfd_create(name, MFD_CLOEXEC);
	assert_true(s->fd >= 0);
	assert_int_equal(ftruncate(s->fd, (off_t)(2 * PAGE + 2 * size)), 0);
	s->map = mmap(NULL, 2 * PAGE + 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	assert_true(s->map != MAP_FAILED);
	*(unsigned long *)s->map = position;
	*(unsigned long *)(s->map + PAGE) = position;
	return (struct ring_map){s->fd, size};
}

static void close_shared(struct shared *s)
{
	munmap(s->map, 2 * PAGE + 2 * s->size);
	close(s->fd);
}

static unsigned long *position_of(struct shared *s)
{
	return (unsigned long *)(s->map + PAGE);
}

/* Room for @size bytes of data, whose header says that they are not complete.  NULL: none. */
static uint32_t *reserve(struct shared *s, size_t size)
{
	unsigned long *at = position_of(s), reader = *(unsigned long *)s->map;
	uint32_t *header = (uint32_t *)(s->map + 2 * PAGE + (*at & (s->size - 1)));
	size_t whole = (BPF_RINGBUF_HDR_SZ + size + 7) & ~7ul;

	if (*at + whole - reader > s->size - 1)
		return NULL; /* never quite full: kernel/bpf/ringbuf.c */
	*header = (uint32_t)size | BPF_RINGBUF_BUSY_BIT;
	memset((uint8_t *)header + BPF_RINGBUF_HDR_SZ, rand(), size);
	*at += whole;
	return header;
}

static void fill(struct writer *w)
{
	struct event_small *e = (struct event_small *)((uint8_t *)w->header + BPF_RINGBUF_HDR_SZ);

	e->head.word = event_word(EVENT_FREE, 0, w->front_at);
	e->addr = w->event;
}

static size_t any_size(void)
{
	return sizeof(struct event_small) + (size_t)(rand() % 8) * 64;
}

static void begin(struct world *world, struct writer *w, size_t size)
{
	w->event = world->nr++;
	w->size = size;
	world->truth[w->event].began = ++world->step;
	w->front_at = 0;
	w->header = reserve(&world->first, w->size);
	w->state = w->header ? BUSY : ASKED;
	if (!w->header)
		w->front_at = event_front(*position_of(&world->first));
}

static void go_on(struct world *world, struct writer *w)
{
	struct truth *truth = &world->truth[w->event];

	if (w->state == ASKED) {
		w->header = reserve(&world->second, w->size);
		truth->dropped = !w->header;
		w->state = w->header ? BUSY : IDLE;
		world->in_second += w->header != NULL;
		return;
	}
	truth->discarded = world->discards && rand() % 16 == 0;
	if (!truth->discarded)
		fill(w);
	truth->done = ++world->step;
	__atomic_store_n(w->header,
			 (uint32_t)w->size | (truth->discarded ? BPF_RINGBUF_DISCARD_BIT : 0),
			 __ATOMIC_RELEASE);
	w->state = IDLE;
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct world *world = ctx;
	const struct event_small *e = data;
	struct truth *truth = &world->truth[e->addr];

	assert_true(size >= sizeof(*e) && e->addr < world->nr);
	assert_true(truth->done && !truth->discarded && !truth->dropped);
	assert_int_equal(truth->seen, 0);
	truth->seen = ++world->seen;
	return world->patience-- == 0 ? -11 : 0;
}

/*
 * Where the reader looks how far the writers have come: one of the two pages cannot be read.  Who
 * tries lets the writers go on between the two looks, and the next try is at the other page.
 */
static struct {
	struct world *world;
	uint8_t *page[RING_PARTS];
	unsigned long faults;
} looks;

static void let_go_on(struct world *world)
{
	struct writer *w = &world->writers[rand() % WRITERS];

	if (w->state != IDLE)
		go_on(world, w);
	else if (world->nr < MAX_EVENTS)
		begin(world, w, any_size());
}

static void on_look(int sig, siginfo_t *info, void *context)
{
	int i = info->si_addr == looks.page[1];

	(void)context;
	if (info->si_addr != looks.page[i]) {
		signal(sig, SIG_DFL);
		return;
	}
	looks.faults++;
	mprotect(looks.page[i], PAGE, PROT_READ);
	mprotect(looks.page[!i], PAGE, PROT_NONE);
	for (int steps = rand() % 40; steps > 0; steps--)
		let_go_on(looks.world);
}

/* The reader's page of the ring @name with the writers' position. */
static uint8_t *page_of(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], path[64];
	unsigned long start, offset;
	uint8_t *found = NULL;

	assert_non_null(maps);
	snprintf(path, sizeof(path), "/memfd:%s ", name);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, path) && sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2 &&
		    offset == PAGE)
			found = (uint8_t *)start;
	fclose(maps);
	assert_non_null(found);
	return found;
}

static void watch_looks(struct world *world)
{
	struct sigaction action = {.sa_sigaction = on_look, .sa_flags = SA_SIGINFO};

	looks.world = world;
	looks.page[0] = page_of("first");
	looks.page[1] = page_of("second");
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(looks.page[0], PAGE, PROT_NONE), 0);
}

static void watch_no_more(void)
{
	mprotect(looks.page[0], PAGE, PROT_READ);
	mprotect(looks.page[1], PAGE, PROT_READ);
	signal(SIGSEGV, SIG_DFL);
}

static void consume(struct world *world)
{
	world->patience = rand() % 4 ? -1 : rand() % 10;
	ring_consume(world->ring);
}

/* All is read, and no event before one that was over when it began. */
static void check(const struct world *world)
{
	for (uint32_t i = 0; i < world->nr; i++) {
		const struct truth *t = &world->truth[i];

		assert_true(t->seen || t->discarded || t->dropped);
		for (uint32_t before = i > 300 ? i - 300 : 0; t->seen && before < i; before++)
			if (world->truth[before].done < t->began)
				assert_true(world->truth[before].seen < t->seen);
	}
}

static void run(struct world *world, unsigned long first, unsigned long second, int reads_of_1000)
{
	struct ring_map maps[RING_PARTS] = {open_shared(&world->first, "first", FRONT, first),
					    open_shared(&world->second, "second", SECOND, second)};
	struct ring_mark mark;

	assert_int_equal(ring_open(maps, on_event, world, &world->ring), 0);
	assert_int_equal(ring_taken(world->ring), first + second);
	world->discards = true;
	watch_looks(world);
	while (world->nr < MAX_EVENTS) {
		if (rand() % 1000 < reads_of_1000)
			consume(world);
		else
			let_go_on(world);
	}
	watch_no_more();
	for (int i = 0; i < WRITERS; i++)
		while (world->writers[i].state != IDLE)
			go_on(world, &world->writers[i]);
	ring_mark(world->ring, &mark);
	world->patience = -1;
	assert_int_equal(ring_consume(world->ring), 0);
	assert_true(ring_has_passed(world->ring, &mark));
	assert_int_equal(ring_taken(world->ring),
			 *position_of(&world->first) + *position_of(&world->second));
	assert_true(looks.faults > 10);
	assert_true(world->in_second > 100 && world->seen - world->in_second > 100);
	check(world);
	ring_close(world->ring);
	close_shared(&world->first);
	close_shared(&world->second);
}

static void run_all(unsigned long first, unsigned long second)
{
	static const int reads[] = {3, 20, 100, 300};

	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		struct world *world = calloc(1, sizeof(*world));

		assert_non_null(world);
		srand((unsigned int)i + 1);
		run(world, first, second, reads[i]);
		free(world);
	}
}

static void test_two_rings_are_one_order(void **state)
{
	(void)state;
	run_all(0, 0);
}

/* A head has room for 35 bits of a position. */
static void test_position_that_no_longer_fits_a_head(void **state)
{
	(void)state;
	run_all((1ul << 35) - 100 * 64, (1ul << 32) - 64);
	run_all((1ul << 36) - FRONT, 1ul << 20);
}

/* What is not complete holds all that is behind it, and all that is younger in the other ring. */
static void test_waits_for_what_is_not_complete(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct writer *a, *b, *c;
	struct ring_map maps[RING_PARTS];
	struct ring_mark mark;

	(void)state;
	assert_non_null(world);
	a = &world->writers[0];
	b = &world->writers[1];
	c = &world->writers[2];
	maps[0] = open_shared(&world->first, "first", FRONT, 0);
	maps[1] = open_shared(&world->second, "second", SECOND, 0);
	assert_int_equal(ring_open(maps, on_event, world, &world->ring), 0);
	begin(world, a, FRONT / 2 - BPF_RINGBUF_HDR_SZ);
	begin(world, b, FRONT / 2 - EVENT_LINE - BPF_RINGBUF_HDR_SZ);
	go_on(world, b);
	for (int i = 0; i < 2; i++) { /* the first ring is full */
		begin(world, c, sizeof(struct event_small));
		assert_int_equal(c->state, ASKED);
		go_on(world, c);
		if (!i)
			go_on(world, c);
	}
	world->patience = -1;
	assert_int_equal(ring_consume(world->ring), 0);
	assert_int_equal(world->seen, 0); /* all of it is behind @a */
	ring_mark(world->ring, &mark);
	assert_false(ring_has_passed(world->ring, &mark));
	go_on(world, a);
	begin(world, b, sizeof(struct event_small));
	assert_int_equal(ring_consume(world->ring), 0);
	assert_int_equal(world->seen, 3);		   /* and now all but the last behind @c */
	assert_false(ring_has_passed(world->ring, &mark)); /* by one of the second ring */
	go_on(world, b);
	go_on(world, b);
	assert_int_equal(ring_consume(world->ring), 0);
	assert_int_equal(world->seen, 3);
	go_on(world, c);
	assert_int_equal(ring_consume(world->ring), 0);
	assert_int_equal(world->seen, 5);
	assert_true(ring_has_passed(world->ring, &mark));
	check(world);
	ring_close(world->ring);
	close_shared(&world->first);
	close_shared(&world->second);
	free(world);
}

static void test_what_is_no_ring_is_refused(void **state)
{
	struct ring_map maps[RING_PARTS] = {{-1, FRONT}, {-1, SECOND}};
	struct shared first;
	struct ring *ring = NULL;

	(void)state;
	assert_int_equal(ring_open(maps, on_event, NULL, &ring), -9 /* EBADF */);
	maps[0] = open_shared(&first, "first", FRONT, 0);
	assert_int_equal(ring_open(maps, on_event, NULL, &ring), -9);
	assert_null(ring);
	close_shared(&first);
	ring_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_rings_are_one_order),
		cmocka_unit_test(test_position_that_no_longer_fits_a_head),
		cmocka_unit_test(test_waits_for_what_is_not_complete),
		cmocka_unit_test(test_what_is_no_ring_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
