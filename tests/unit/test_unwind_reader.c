/* test_unwind_reader.c - the stack reader reads right, and the process read does not notice */
#include "tests/unit/reader_target.h"

static struct dwunw_stack_reader *attach(pid_t pid, uint32_t flags)
{
	const struct dwunw_stack_reader_opts opts = {.flags = flags};
	struct dwunw_stack_reader *reader;

	assert_int_equal(dwunw_stack_reader_attach(pid, &opts, &reader), 0);
	return reader;
}

/* Unwind @copy: the target is a copy of this process, with the same mappings. */
static int unwind(const struct dwunw_stack_copy *copy, struct dwunw_frame *frames,
		  enum dwunw_status *status)
{
	struct dwunw_space *space;
	int nr;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	nr = unwind_once(space, PLAIN_SAMPLE(&copy->regs, &copy->stack), frames, LIVE_MAX_FRAMES,
			 status);
	dwunw_space_free(space);
	return nr;
}

/* The callers of the function that waits are those that libgcc found in the thread. */
static void assert_frames(const struct dwunw_stack_copy *copy, const struct target_thread *t)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	enum dwunw_status status;
	int nr = unwind(copy, frames, &status), callers = (int)t->nr_pc - 1;

	assert_int_equal(status, DWUNW_STATUS_ENDED);
	assert_true(callers >= 7);
	assert_true(nr >= callers);
	for (int i = 0; i < callers; i++)
		assert_int_equal(frames[nr - callers + i].pc, t->pc[1 + i]);
}

static const struct target_thread *thread_of(const struct target *t, pid_t tid)
{
	for (int i = 0; i < NR_WAITS; i++)
		if (t->shared->thread[i].tid == tid)
			return &t->shared->thread[i];
	return NULL;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct seen {
	const struct target *target;
	int nr, compared;
	uint64_t stopped_ns[16];
};

static int compare_thread(void *arg, int err, const struct dwunw_stack_copy *copy)
{
	struct seen *seen = arg;
	const struct target_thread *t = thread_of(seen->target, copy->tid);

	assert_int_equal(err, 0);
	assert_int_equal(copy->flags, 0);
	seen->stopped_ns[seen->nr++] = copy->stopped_ns;
	if (t)
		assert_frames(copy, t);
	seen->compared += t != NULL;
	return 0;
}

static void frames_of_stopped_threads_are_those_of_libgcc(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader *reader = attach(t.pid, DWUNW_READER_ALWAYS_STOP);

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct seen seen = {.target = &t};
		pid_t tids[3] = {0};

		assert_int_equal(dwunw_stack_reader_threads(reader, tids, 2), NR_WAITS + 1);
		assert_true(tids[0] == t.pid && tids[1] && !tids[2]);
		assert_int_equal(dwunw_stack_reader_read_all(reader, compare_thread, &seen), 0);
		assert_int_equal(seen.nr, NR_WAITS + 1);
		assert_int_equal(seen.compared, NR_WAITS);
		qsort(seen.stopped_ns, (size_t)seen.nr, sizeof(uint64_t), compare_u64);
		if (i == 19)
			print_message("# stopped for %.1f us (median of %d threads)\n",
				      (double)seen.stopped_ns[seen.nr / 2] / 1000, seen.nr);
	}
	assert_int_equal(target_tracer(t.pid), 0);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

/* Without registers that libc does not need a stack may end early, but what is there is right. */
static void frames_of_a_waiting_thread_that_is_not_stopped_are_right(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader *reader = attach(t.pid, DWUNW_READER_NO_STOP);
	const struct target_thread *thread = &t.shared->thread[WAIT_READ];
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct dwunw_stack_copy copy;
	enum dwunw_status status;
	bool found = false;
	int nr;

	(void)state;
	assert_int_equal(dwunw_stack_reader_read(reader, thread->tid, &copy), 0);
	assert_int_equal(copy.flags, DWUNW_COPY_NOT_STOPPED);
	assert_int_equal(copy.stopped_ns, 0);
	assert_false(copy.regs.known >> DWUNW_X86_64_RBP & 1);
	assert_int_equal(copy.regs.reg[DWUNW_X86_64_RSP], copy.stack.addr);
	nr = unwind(&copy, frames, &status);
	assert_true(nr >= 2);
	assert_true(status == DWUNW_STATUS_ENDED ||
		    frames[nr - 1].flags & DWUNW_FRAME_FLAG_PARTIAL);
	/* The function that called read() was called where libgcc said. */
	for (size_t i = 0; i + 8 <= copy.stack.len && !found; i += 8)
		found = !memcmp(copy.stack.bytes + i, &thread->pc[1], 8);
	assert_true(found);
	assert_int_equal(dwunw_stack_reader_read(reader, t.shared->thread[WAIT_NOTHING].tid, &copy),
			 -EAGAIN);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

#define NR_READS 300

static void no_wait_is_cut_short_by_being_read(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader *reader = attach(t.pid, 0);
	struct dwunw_stack_copy copy;
	unsigned long rounds[NR_WAITS], stopped[NR_WAITS] = {0};

	(void)state;
	for (int i = 0; i < NR_WAITS; i++)
		rounds[i] = t.shared->thread[i].rounds;
	for (int n = 0; n < NR_READS; n++) {
		for (int i = 0; i < NR_WAITS; i++) {
			int err = dwunw_stack_reader_read(reader, t.shared->thread[i].tid, &copy);

			assert_int_equal(err, 0);
			stopped[i] += !(copy.flags & DWUNW_COPY_NOT_STOPPED);
		}
		target_nap(1000);
	}
	/* and each goes on */
	for (int i = 0; i < NR_WAITS; i++)
		while (i != WAIT_READ && t.shared->thread[i].rounds <= rounds[i])
			target_nap(1000);
	assert_int_equal(stopped[WAIT_NOTHING], NR_READS);
	for (int i = 0; i < NR_WAITS; i++) {
		if (i != WAIT_EPOLL && i != WAIT_SIGNAL) {
			assert_int_equal(t.shared->thread[i].cut_short, 0);
			continue;
		}
		/* These two can begin in the moment between the look at the thread and its stop;
		 * one that is found to wait is not stopped.  On a busy machine they are less often
		 * found so. */
		assert_true(t.shared->thread[i].cut_short <= stopped[i]);
		assert_true(stopped[i] < NR_READS - NR_READS / 20);
	}
	assert_int_equal(t.shared->thread[WAIT_READ].rounds, 0);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

static int count_thread(void *arg, int err, const struct dwunw_stack_copy *copy)
{
	assert_int_equal(err, 0);
	assert_true(copy->stack.len > 0);
	++*(int *)arg;
	return 0;
}

static void a_stopped_process_stays_stopped_and_goes_on_when_told(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader *reader = attach(t.pid, DWUNW_READER_ALWAYS_STOP);
	atomic_ulong *runs = &t.shared->thread[WAIT_NOTHING].rounds;
	unsigned long before;
	int nr = 0, status;

	(void)state;
	kill(t.pid, SIGSTOP);
	assert_int_equal(waitpid(t.pid, &status, WUNTRACED), t.pid);
	target_nap(20000);
	before = *runs;
	for (int i = 0; i < 50; i++)
		assert_int_equal(dwunw_stack_reader_read_all(reader, count_thread, &nr), 0);
	assert_int_equal(nr, 50 * (NR_WAITS + 1));
	target_nap(20000);
	assert_int_equal(target_state(t.pid), 'T');
	assert_int_equal(target_tracer(t.pid), 0);
	assert_int_equal(*runs, before);
	assert_int_equal(waitpid(t.pid, &status, WUNTRACED | WNOHANG), 0);
	kill(t.pid, SIGCONT);
	target_nap(50000);
	assert_true(*runs > before);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

static void every_signal_reaches_a_thread_that_is_read(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader *reader = attach(t.pid, 0);
	struct dwunw_stack_copy copy;
	unsigned long sent = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		sent += !sigqueue(t.pid, SIGRTMIN, (union sigval){0});
		assert_int_equal(dwunw_stack_reader_read(reader, t.pid, &copy), 0);
	}
	for (int i = 0; i < 100 && t.shared->signals < sent; i++)
		target_nap(10000);
	assert_int_equal(sent, 2000);
	assert_int_equal(t.shared->signals, sent);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

/* A body: naps so short that the thread runs while its stack, a deep one, is copied. */
static void nap_on_a_deep_stack(void)
{
	volatile char deep[4 << 20];

	memset((char *)deep, 1, sizeof(deep));
	target_self->ready = 1;
	for (;;)
		target_nap(50);
}

static void a_copy_during_which_the_thread_ran_is_marked(void **state)
{
	struct target t = target_start(nap_on_a_deep_stack);
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;
	int torn = 0;

	(void)state;
	while (!t.shared->ready)
		target_nap(1000);
	reader = attach(t.pid, DWUNW_READER_NO_STOP);
	/* On a busy machine the thread stands ready to run in most of the looks: -EAGAIN. */
	for (int i = 0; i < 2000 && torn < 10; i++) {
		int err = dwunw_stack_reader_read(reader, t.pid, &copy);

		assert_true(err == 0 || err == -EAGAIN);
		torn += !err && copy.flags == (DWUNW_COPY_NOT_STOPPED | DWUNW_COPY_TORN);
		assert_true(err || copy.stack.len > 4 << 20);
	}
	assert_int_equal(torn, 10);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

struct thief {
	pid_t pid;
	atomic_int stop;
	atomic_ulong stolen;
};

/* Wait for the target as a program may that has it as its child. */
static void *steal_stops(void *arg)
{
	struct thief *thief = arg;
	int status;

	while (!thief->stop)
		thief->stolen += waitpid(thief->pid, &status, WNOHANG | __WALL) == thief->pid;
	return NULL;
}

static void a_stop_that_another_thread_waited_for_is_seen_all_the_same(void **state)
{
	struct target t = target_start_waits();
	struct dwunw_stack_reader *reader = attach(t.pid, 0);
	struct thief thief = {.pid = t.pid};
	struct dwunw_stack_copy copy;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, steal_stops, &thief), 0);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(dwunw_stack_reader_read(reader, t.pid, &copy), 0);
		assert_int_equal(copy.flags, 0);
	}
	thief.stop = 1;
	pthread_join(thread, NULL);
	assert_true(thief.stolen > 0);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

static void a_copy_ends_at_the_limit_and_says_so(void **state)
{
	struct target t = target_start_waits();
	const struct dwunw_stack_reader_opts opts = {.max_stack = 256};
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;

	(void)state;
	assert_int_equal(dwunw_stack_reader_attach(t.pid, &opts, &reader), 0);
	assert_int_equal(dwunw_stack_reader_read(reader, t.shared->thread[WAIT_READ].tid, &copy),
			 0);
	assert_int_equal(copy.stack.len, 256);
	assert_int_equal(copy.regs.flags, DWUNW_EVENT_STACK_LIMIT);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

/* A body: a pause on a stack with a page in its middle that cannot be read. */
static void pause_above_a_hole(void)
{
	const size_t page = 4096, pages = 16;
	uint8_t *stack = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *sp = stack + 4 * page;

	memset(stack, 0x5a, pages * page);
	target_self->ready = madvise(stack + 8 * page, page, 102 /* MADV_GUARD_INSTALL */) ? -1 : 1;
	__asm__ volatile("movq %0, %%rsp\n1:\tmovl $34, %%eax\n\tsyscall\n\tjmp 1b" : : "r"(sp));
	__builtin_unreachable();
}

static void a_page_that_is_not_there_reads_as_zeros_and_is_told_of(void **state)
{
	struct target t = target_start(pause_above_a_hole);
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;

	(void)state;
	while (!t.shared->ready)
		target_nap(1000);
	if (t.shared->ready < 0) {
		target_end(&t);
		skip();
	}
	target_nap(5000);
	reader = attach(t.pid, 0);
	assert_int_equal(dwunw_stack_reader_read(reader, t.pid, &copy), 0);
	assert_true(copy.regs.flags & DWUNW_EVENT_STACK_FAULT);
	assert_true(copy.stack.len >= 12 * 4096);
	assert_int_equal(copy.stack.bytes[4 * 4096 - 1], 0x5a);
	assert_int_equal(copy.stack.bytes[4 * 4096], 0);
	assert_int_equal(copy.stack.bytes[5 * 4096 - 1], 0);
	assert_int_equal(copy.stack.bytes[5 * 4096], 0x5a);
	assert_int_equal(copy.stack.bytes[12 * 4096 - 1], 0x5a);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

/* A body: the main thread waits for the child of its vfork, which nothing but a kill interrupts. */
static void wait_in_vfork(void)
{
	target_self->ready = 1;
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		target_nap(900000);
		_exit(0);
	}
	target_self->ready = 2;
}

static void a_thread_that_cannot_be_stopped_is_read_as_it_waits(void **state)
{
	struct target t = target_start(wait_in_vfork);
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy copy;

	(void)state;
	while (!t.shared->ready)
		target_nap(1000);
	target_nap(50000);
	reader = attach(t.pid, 0);
	assert_int_equal(dwunw_stack_reader_read(reader, t.pid, &copy), 0);
	assert_int_equal(t.shared->ready, 1);
	assert_int_equal(copy.flags, DWUNW_COPY_NOT_STOPPED);
	assert_int_equal(target_tracer(t.pid), 0);
	dwunw_stack_reader_detach(reader);
	target_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_stopped_threads_are_those_of_libgcc),
		cmocka_unit_test(frames_of_a_waiting_thread_that_is_not_stopped_are_right),
		cmocka_unit_test(no_wait_is_cut_short_by_being_read),
		cmocka_unit_test(a_stopped_process_stays_stopped_and_goes_on_when_told),
		cmocka_unit_test(every_signal_reaches_a_thread_that_is_read),
		cmocka_unit_test(a_copy_during_which_the_thread_ran_is_marked),
		cmocka_unit_test(a_stop_that_another_thread_waited_for_is_seen_all_the_same),
		cmocka_unit_test(a_copy_ends_at_the_limit_and_says_so),
		cmocka_unit_test(a_page_that_is_not_there_reads_as_zeros_and_is_told_of),
		cmocka_unit_test(a_thread_that_cannot_be_stopped_is_read_as_it_waits),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
