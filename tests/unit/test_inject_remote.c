/* test_inject_remote.c - remote calls: what they do, and that signals and stops are as without */
#include "tests/unit/inject_remote_world.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/uio.h>

static void run_counting(struct told *told)
{
	while (!told->over) {
		told->rounds++;
		told->ready = 1;
		usleep(300);
	}
}

static void calls_have_their_results(void **state)
{
	const uint64_t map[6] = {0, 4096, PROT_READ, MAP_SHARED, 0, 0};
	uint64_t at, args[6];
	char path[64], bytes[6] = "";
	struct target_process t;
	struct there r;
	int64_t fd, page;
	int ours;

	(void)state;
	start_target(&t, run_counting);
	wait_ready(&t);
	begin_there(&r, t.pid);
	assert_int_equal(call_there(&r, SYS_close, 4747, 0), -EBADF);
	assert_int_equal(put_there(&r, "mleak-test", sizeof("mleak-test"), &at), 0);
	assert_int_equal(at % 16, 0);
	fd = call_there(&r, SYS_memfd_create, at, MFD_CLOEXEC);
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)t.pid, (int)fd);
	ours = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(write(ours, "there", 5), 5);
	assert_int_equal(ftruncate(ours, 4096), 0);
	memcpy(args, map, sizeof(args));
	args[4] = (uint64_t)fd;
	page = call_with(&r, SYS_mmap, args);
	assert_true(page > 0);
	assert_int_equal(process_vm_readv(t.pid, &(struct iovec){bytes, 5}, 1,
					  &(struct iovec){(void *)(uintptr_t)page, 5}, 1, 0),
			 5);
	assert_string_equal(bytes, "there");
	assert_int_equal(call_there(&r, SYS_munmap, (uint64_t)page, 4096), 0);
	assert_int_equal(call_there(&r, SYS_close, (uint64_t)fd, 0), 0);
	end_there(&r);
	close(ours);
	assert_goes_on(&t);
	end_target(&t);
}

static void there_is_room_for_some_bytes(void **state)
{
	char bytes[REMOTE_PUT_MOST], found[100];
	struct target_process t;
	uint64_t first, second, third;
	struct there r;

	(void)state;
	memset(bytes, 47, sizeof(bytes));
	start_target(&t, run_counting);
	wait_ready(&t);
	begin_there(&r, t.pid);
	assert_int_equal(put_there(&r, bytes, 100, &first), 0);
	assert_int_equal(put_there(&r, "other", 6, &second), 0);
	assert_true(second + 6 <= first);
	assert_int_equal(put_there(&r, bytes, REMOTE_PUT_MOST - 112, &third), -E2BIG);
	assert_int_equal(put_there(&r, bytes, REMOTE_PUT_MOST - 128, &third), 0);
	assert_int_equal(put_there(&r, bytes, 1, &third), -E2BIG);
	assert_int_equal(process_vm_readv(t.pid, &(struct iovec){found, 100}, 1,
					  &(struct iovec){(void *)(uintptr_t)first, 100}, 1, 0),
			 100);
	assert_memory_equal(found, bytes, 100);
	end_there(&r);
	end_target(&t);
}

#define SIGNALS 2000

static struct told *told_of_handler;

/* Signals come in the order in which they were sent, each once. */
static void count_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told_of_handler->wrong += info->si_value.sival_int != (int)told_of_handler->handled;
	told_of_handler->handled++;
}

static void run_handling(struct told *told)
{
	struct sigaction action = {.sa_sigaction = count_signal, .sa_flags = SA_SIGINFO};

	told_of_handler = told;
	sigaction(SIGRTMIN, &action, NULL);
	run_counting(told);
}

static void signals_come_once_each(void **state)
{
	struct target_process t;
	struct there r;
	pid_t sender;

	(void)state;
	start_target(&t, run_handling);
	wait_ready(&t);
	sender = fork();
	if (!sender) {
		for (int i = 0; i < SIGNALS; i++) {
			sigqueue(t.pid, SIGRTMIN, (union sigval){.sival_int = i});
			usleep(i % 50);
		}
		_exit(0);
	}
	while (!waitpid(sender, NULL, WNOHANG)) {
		begin_there(&r, t.pid);
		for (int i = 0; i < 10; i++)
			assert_int_equal(call_there(&r, SYS_getpid, 0, 0), t.pid);
		end_there(&r);
	}
	while (t.told->handled < SIGNALS)
		usleep(1000);
	assert_goes_on(&t);
	assert_int_equal(t.told->handled, SIGNALS);
	end_target(&t);
}

static void assert_stays_stopped(const struct target_process *t)
{
	uint64_t rounds;

	wait_state(t->pid, 'T');
	rounds = t->told->rounds;
	usleep(20000);
	assert_int_equal(t->told->rounds, rounds);
	assert_int_equal(state_of(t->pid), 'T');
}

static void job_control_is_as_without(void **state)
{
	struct target_process t;
	struct there r;

	(void)state;
	start_target(&t, run_counting);
	wait_ready(&t);
	kill(t.pid, SIGSTOP);
	wait_state(t.pid, 'T');
	begin_there(&r, t.pid);
	assert_int_equal(call_there(&r, SYS_getpid, 0, 0), t.pid);
	end_there(&r);
	assert_stays_stopped(&t);
	kill(t.pid, SIGCONT);
	assert_goes_on(&t);
	/* meanwhile */
	begin_there(&r, t.pid);
	kill(t.pid, SIGSTOP);
	assert_int_equal(call_there(&r, SYS_getpid, 0, 0), t.pid);
	end_there(&r);
	assert_stays_stopped(&t);
	begin_there(&r, t.pid);
	kill(t.pid, SIGCONT);
	assert_int_equal(call_there(&r, SYS_getpid, 0, 0), t.pid);
	end_there(&r);
	assert_goes_on(&t);
	end_target(&t);
}

static void *run_short(void *arg)
{
	struct told *told = arg;

	told->rounds++;
	return NULL;
}

/* The main thread has ended; others come and go. */
static void *run_starting(void *arg)
{
	struct told *told = arg;
	pthread_t threads[3];

	while (!told->over) {
		for (int i = 0; i < 3; i++)
			told->wrong += pthread_create(&threads[i], NULL, run_short, told) != 0;
		for (int i = 0; i < 3; i++)
			told->wrong += pthread_join(threads[i], NULL) != 0;
		told->ready = 1;
	}
	_exit(0);
}

static void run_threads(struct told *told)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run_starting, told);
	pthread_exit(NULL);
}

static void threads_that_come_and_go(void **state)
{
	struct target_process t;
	int done = 0, gone = 0;

	(void)state;
	start_target(&t, run_threads);
	wait_ready(&t);
	while (done < 200) {
		struct there r;
		int err = try_begin(&r, t.pid);

		/* it may end before it is asked to stop */
		gone += err != 0;
		assert_true(!err || err == -ESRCH || err == -ETIMEDOUT);
		if (err)
			continue;
		for (int i = 0; i < 5; i++)
			assert_int_equal(call_there(&r, SYS_getpid, 0, 0), t.pid);
		end_there(&r);
		done++;
	}
	assert_true(gone < done);
	assert_goes_on(&t);
	end_target(&t);
}

static void *become_another_program(void *arg)
{
	struct told *told = arg;

	while (!told->aux)
		usleep(200);
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

/* The main thread is the one that is disturbed least. */
static void run_until_another_program(struct told *told)
{
	pthread_t thread;
	int pipes[2];
	char byte;

	pthread_create(&thread, NULL, become_another_program, told);
	told->wrong += pipe(pipes) != 0;
	told->ready = 1;
	told->wrong += read(pipes[0], &byte, 1) != 1;
}

/* The main thread's number is another one's from then on, and whoever waits for that number alone
 * is not woken by the kernel. */
static void another_thread_begins_a_program(void **state)
{
	const uint64_t until_ns = clock_now_ns() + 20000 * MS;
	struct target_process t;
	struct there r;

	(void)state;
	start_target(&t, run_until_another_program);
	wait_ready(&t);
	wait_state(t.pid, 'S');
	begin_there(&r, t.pid);
	r.nr = SYS_pause;
	r.asked = 1;
	t.told->aux = 1;
	while (r.asked && clock_now_ns() < until_ns)
		usleep(200);
	assert_int_equal(r.asked, 0);
	assert_int_equal(r.err, -ESRCH);
	end_there(&r);
	end_target(&t);
}

/* In a restartable sequence, which only its being interrupted ends. */
static void run_sequence(struct told *told)
{
	struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	while (!told->over) {
		told->ready = 1;
		__asm__ volatile("lea 3f(%%rip), %%rax\n\t"
				 "mov %%rax, %[area]\n"
				 "1:\n\t"
				 "cmpl $0, %[over]\n\t"
				 "je 1b\n"
				 "2:\n\t"
				 "jmp 5f\n\t"
				 ".long 0x53053053\n"
				 "4:\n\t"
				 "incq %[handled]\n"
				 "5:\n\t"
				 ".pushsection .data.rel.rseq, \"aw\"\n\t"
				 ".balign 32\n"
				 "3:\n\t"
				 ".long 0, 0\n\t"
				 ".quad 1b, 2b - 1b, 4b\n\t"
				 ".popsection"
				 : [area] "=m"(area->rseq_cs), [handled] "+m"(told->handled)
				 : [over] "m"(told->over)
				 : "rax", "memory", "cc");
		told->rounds++;
	}
}

static void sequences_begin_anew(void **state)
{
	struct target_process t;
	struct there r;

	(void)state;
	if (!__rseq_size)
		skip();
	start_target(&t, run_sequence);
	wait_ready(&t);
	if (!is_sequence_told()) {
		assert_int_equal(try_begin(&r, t.pid), -EAGAIN);
		end_target(&t);
		return;
	}
	for (int i = 0; i < 50; i++) {
		const uint64_t until_ns = clock_now_ns() + 20000 * MS;
		uint64_t before;

		begin_there(&r, t.pid);
		before = t.told->rounds;
		assert_int_equal(call_there(&r, SYS_getpid, 0, 0), t.pid);
		end_there(&r);
		while (t.told->rounds == before && clock_now_ns() < until_ns)
			usleep(100);
		assert_true(t.told->rounds > before);
	}
	assert_true(t.told->handled >= 50);
	end_target(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_have_their_results),
		cmocka_unit_test(there_is_room_for_some_bytes),
		cmocka_unit_test(signals_come_once_each),
		cmocka_unit_test(job_control_is_as_without),
		cmocka_unit_test(threads_that_come_and_go),
		cmocka_unit_test(another_thread_begins_a_program),
		cmocka_unit_test(sequences_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
