/* test_injected_threads.c - what the code that is put into targets records of many threads, of
 * signal handlers, and of calls that are left by a jump */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "tests/unit/injected_world.h"

#define THREADS 6
#define CALLS	10000u
#define HANDLER (1ull << 40) /* sizes and addresses of what handlers allocate are above */

/* Addresses that no other block has. */
static uint64_t next_block;
static void (*within)(void); /* called while an allocation is under way; or NULL */

ALLOCATOR static void *fake(size_t size)
{
	uint64_t block = __atomic_add_fetch(&next_block, 16, __ATOMIC_RELAXED);

	if (within)
		within();
	return (void *)(block | (size & HANDLER));
}

ALLOCATOR static void *fake_realloc(void *old, size_t size)
{
	(void)old;
	return fake(size);
}

ALLOCATOR static void fake_free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

static void *(*my_malloc)(size_t);
static void *(*my_realloc)(void *, size_t);
static void (*my_free)(void *);

static void put_all(void)
{
	within = NULL;
	my_malloc = world_put(FUNC_MALLOC, "malloc", (void *)fake);
	my_realloc = world_put(FUNC_REALLOC, "realloc", (void *)fake_realloc);
	my_free = world_put(FUNC_FREE, "free", (void *)fake_free);
}

struct noted {
	uint32_t type;
	uint64_t addr, size;
};

/* What a thread did, in its own order; and its handlers. */
struct list {
	struct noted *v;
	uint32_t nr, seen;
};

static struct actor {
	pthread_t thread;
	uint32_t tid;
	struct list own, handlers;
	struct injected_thread *place; /* once it has one */
	uint32_t interrupted;	       /* in the image's code, by handlers */
	bool over;
} actors[THREADS];

static __thread struct actor *self;

static void note(struct list *l, uint32_t type, void *addr, uint64_t size)
{
	l->v[l->nr++] = (struct noted){.type = type, .addr = (uint64_t)addr, .size = size};
}

static void on_signal(int nr)
{
	struct list *l = self ? &self->handlers : NULL;
	int saved_errno = errno;
	void *block;

	(void)nr;
	if (!l || l->nr + 2 > CALLS)
		return;
	self->interrupted += self->place && self->place->inside;
	block = my_malloc(HANDLER + l->nr);
	note(l, EVENT_ALLOC, block, HANDLER + l->nr);
	my_free(block);
	note(l, EVENT_FREE, block, 0);
	errno = saved_errno;
}

/* One call of many, on a stack that changes. */
static __attribute__((noinline)) void *act(void *block, uint32_t i, uint32_t depth)
{
	volatile uint8_t frame[200];
	struct list *l = &self->own;

	frame[i % sizeof(frame)] = (uint8_t)i;
	if (depth)
		return act(block, i, depth - 1);
	if (block && i % 3 == 0) {
		note(l, EVENT_RELEASE, block, 0);
		block = my_realloc(block, i);
		note(l, EVENT_ALLOC, block, i);
		return block;
	}
	if (block) {
		note(l, EVENT_FREE, block, 0);
		my_free(block);
	}
	block = my_malloc(i);
	note(l, EVENT_ALLOC, block, i);
	return block;
}

static bool signals;

/* Has this thread been interrupted too seldom so far? */
static bool is_to_go_on(void)
{
	return self->interrupted < 5 && self->own.nr < 5 * CALLS;
}

static void *run(void *arg)
{
	void *block = NULL;

	self = arg;
	__atomic_store_n(&self->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (uint32_t i = 1; i <= CALLS || (signals && is_to_go_on()); i++) {
		block = act(block, i, i % 40);
		self->place = i == 1 ? world_thread() : self->place;
	}
	self = NULL;
	__atomic_store_n(&((struct actor *)arg)->over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Is the event @s the next of @l? */
static void expect_next(struct list *l, const struct seen *s)
{
	const struct noted *n = &l->v[l->seen++];

	assert_true(l->seen <= l->nr);
	assert_int_equal(s->type, n->type);
	assert_int_equal(s->addr, n->addr);
	if (s->type == EVENT_ALLOC)
		assert_int_equal(s->size, n->size);
}

static void compare(void)
{
	for (uint32_t i = 0; i < world.nr_seen; i++) {
		const struct seen *s = &world.seen[i];
		uint32_t who = 0;

		assert_true(!i || s->time >= world.seen[i - 1].time);
		while (who < THREADS && actors[who].tid != s->tid)
			who++;
		assert_true(who < THREADS);
		expect_next(s->addr & HANDLER ? &actors[who].handlers : &actors[who].own, s);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(actors[i].own.seen, actors[i].own.nr);
		assert_int_equal(actors[i].handlers.seen, actors[i].handlers.nr);
	}
}

static void begin_actors(bool with_signals)
{
	signals = with_signals;
	memset(actors, 0, sizeof(actors));
	for (uint32_t i = 0; i < THREADS; i++) {
		actors[i].own.v = calloc(6 * CALLS, sizeof(struct noted));
		actors[i].handlers.v = calloc(CALLS, sizeof(struct noted));
		assert_int_equal(pthread_create(&actors[i].thread, NULL, run, &actors[i]), 0);
	}
}

static void end_actors(void)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		free(actors[i].own.v);
		free(actors[i].handlers.v);
	}
}

/* Consume until all are over; signals come all the time. */
static void interrupt_actors(void)
{
	for (uint32_t over = 0, i = 0; over < THREADS; i = (i + 1) % THREADS) {
		if (!i)
			over = 0;
		over += __atomic_load_n(&actors[i].over, __ATOMIC_ACQUIRE);
		if (signals && !actors[i].over)
			pthread_kill(actors[i].thread, SIGUSR1);
		world_take();
	}
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(actors[i].thread, NULL), 0);
	world_take_all();
}

static void all_events_of_many_threads_come_in_their_order(void **state)
{
	(void)state;
	put_all();
	begin_actors(false);
	interrupt_actors();
	compare();
	assert_int_equal(world_lost(MLK_LOST_ALLOC) + world_lost(MLK_LOST_FREE), 0);
	assert_true(world_is_idle());
	end_actors();
}

static void handlers_record_beside_what_they_interrupt(void **state)
{
	struct sigaction action = {.sa_handler = on_signal};
	uint32_t interrupted = 0;

	(void)state;
	put_all();
	sigaction(SIGUSR1, &action, NULL);
	begin_actors(true);
	interrupt_actors();
	compare();
	for (uint32_t i = 0; i < THREADS; i++)
		interrupted += actors[i].interrupted;
	assert_true(interrupted > 0);
	assert_true(world_is_idle());
	end_actors();
}

static sigjmp_buf back;

static void leave(int nr)
{
	(void)nr;
	siglongjmp(back, 1);
}

static void be_left(void)
{
	within = NULL;
	raise(SIGUSR2);
}

/* Leave an allocation by a jump out of a handler. */
static __attribute__((noinline)) void leave_a_call(void)
{
	within = be_left;
	if (!sigsetjmp(back, 1))
		my_malloc(1);
}

static void leave_by_a_jump(int flags)
{
	struct sigaction action = {.sa_handler = leave, .sa_flags = flags};

	put_all();
	sigaction(SIGUSR2, &action, NULL);
	leave_a_call();
	assert_true(world_thread()->inside != 0);
	my_malloc(2);
	assert_true(world_is_idle());
	world_take_all();
	assert_int_equal(world.nr_seen, 1);
	assert_int_equal(world.seen[0].size, 2);
}

static void a_call_that_is_left_by_a_jump_is_forgotten(void **state)
{
	(void)state;
	leave_by_a_jump(0);
}

static void so_it_is_when_handlers_have_a_stack(void **state)
{
	static uint8_t other[65536];
	stack_t alternate = {.ss_sp = other, .ss_size = sizeof(other)};

	(void)state;
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	leave_by_a_jump(SA_ONSTACK);
	alternate.ss_flags = SS_DISABLE;
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
}

static void *allocate_once(void *tcb)
{
	my_malloc((size_t)syscall(SYS_gettid));
	*(uint64_t *)tcb = (uint64_t)__builtin_thread_pointer();
	return NULL;
}

static bool has_ended(uint32_t tgid, uint32_t tid)
{
	return syscall(SYS_tgkill, tgid, tid, 0) && errno == ESRCH;
}

static void threads_with_the_same_control_block_are_told_apart(void **state)
{
	uint64_t first = 0, tcb;
	pthread_t thread;

	(void)state;
	put_all();
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(pthread_create(&thread, NULL, allocate_once, &tcb), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		first = first ? first : tcb;
		assert_int_equal(tcb, first); /* what the test is about */
		world_take_all();
		assert_int_equal(world.nr_seen, i + 1);
		assert_int_equal(world.seen[i].tid, world.seen[i].size);
		assert_true(!i || world.seen[i].tid != world.seen[i - 1].tid);
		while (!has_ended((uint32_t)getpid(), world.seen[i].tid))
			usleep(100);
		shared_rings_give_back(world.rings, has_ended);
	}
	assert_int_equal(world_lost(MLK_LOST_ALLOC), 0);
}

static void threads_without_a_place_are_not_recorded(void **state)
{
	uint64_t here = (uint64_t)__builtin_thread_pointer();

	(void)state;
	put_all();
	/* All are of threads that live: of this one. */
	for (size_t i = 0; i < world.image.nr_threads; i++) {
		world.threads[i].tcb = here + 1 + i;
		world.threads[i].tid = (uint32_t)syscall(SYS_gettid);
	}
	assert_true((uint64_t)my_malloc(1) != 0);
	assert_true(world_is_idle());
	world_take_all();
	assert_int_equal(world.nr_seen, 0);
	/* Those of dead ones are taken. */
	for (size_t i = 0; i < world.image.nr_threads; i++)
		world.threads[i].tid = 0x3fffffff;
	for (int i = 0; i < 2000; i++)
		my_malloc(2);
	assert_int_equal(world_thread()->tid, syscall(SYS_gettid));
	world_take_all();
	assert_in_range(world.nr_seen, 900, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(all_events_of_many_threads_come_in_their_order),
		IN_WORLD(handlers_record_beside_what_they_interrupt),
		IN_WORLD(a_call_that_is_left_by_a_jump_is_forgotten),
		IN_WORLD(so_it_is_when_handlers_have_a_stack),
		IN_WORLD(threads_with_the_same_control_block_are_told_apart),
		IN_WORLD(threads_without_a_place_are_not_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
