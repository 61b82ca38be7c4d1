/* test_inject_remote_refused.c - processes in which no remote calls are executed, and why */
#include "tests/unit/inject_remote_world.h"

#include <elf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <ucontext.h>

static void count(struct told *told)
{
	while (!told->over) {
		told->rounds++;
		told->ready = 1;
		usleep(300);
	}
}

static void assert_refused_as(pid_t pid, int with, const char *text)
{
	struct there r;

	assert_int_equal(try_begin(&r, pid), with);
	assert_string_equal(r.why, text);
}

/* It is refused, and goes on. */
static void assert_refused(void (*run)(struct told *), int with, const char *text)
{
	struct target_process t;

	start_target(&t, run);
	wait_ready(&t);
	assert_refused_as(t.pid, with, text);
	assert_goes_on(&t);
	end_target(&t);
}

static void *count_filtered(void *told)
{
	struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	count(told);
	return NULL;
}

static void run_filtered(struct told *told)
{
	pthread_t thread;

	pthread_create(&thread, NULL, count_filtered, told);
	pthread_join(thread, NULL);
}

static void a_seccomp_filter(void **state)
{
	(void)state;
	assert_refused(run_filtered, -ENOTSUP, "has a seccomp filter");
}

static void another_tracer(void **state)
{
	struct target_process t;

	(void)state;
	start_target(&t, count);
	wait_ready(&t);
	assert_int_equal(ptrace(PTRACE_SEIZE, t.pid, NULL, NULL), 0);
	assert_refused_as(t.pid, -EBUSY, "is traced by another process");
	ptrace(PTRACE_INTERRUPT, t.pid, NULL, NULL);
	assert_int_equal(waitpid(t.pid, NULL, 0), t.pid);
	assert_int_equal(ptrace(PTRACE_DETACH, t.pid, NULL, NULL), 0);
	assert_goes_on(&t);
	end_target(&t);
}

/* Its parent waits without an interruption until the child is over. */
static void run_vfork(struct told *told)
{
	told->ready = 1;
	if (!vfork()) {
		count(told);
		_exit(0);
	}
}

static void a_thread_that_cannot_be_stopped(void **state)
{
	(void)state;
	assert_refused(run_vfork, -ETIMEDOUT,
		       "has no thread that can be stopped: each waits for a device, or has ended");
}

static struct told *told_of_handler;
static char selector; /* all system calls are executed */

static void run_dispatching(struct told *told)
{
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector))
		told->error = errno;
	count(told);
}

/* Kernels before 6.4 do not tell. */
static bool is_dispatch_told(void)
{
	return kernel_at_least(6, 4);
}

static void dispatched_calls(void **state)
{
	(void)state;
	if (!is_dispatch_told())
		skip();
	assert_refused(run_dispatching, -ENOTSUP, "has system calls dispatched to itself");
}

/* From here system calls are executed; all others come to a handler. */
long own_syscall(long nr, long a, long b, long c, long d, long e, long f);
void own_restorer(void);
extern const char own_code[], own_code_end[];
__asm__(".text\n"
	"own_code:\n"
	"own_syscall:\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsi, %rdi\n\t"
	"mov %rdx, %rsi\n\t"
	"mov %rcx, %rdx\n\t"
	"mov %r8, %r10\n\t"
	"mov %r9, %r8\n\t"
	"mov 8(%rsp), %r9\n\t"
	"syscall\n\t"
	"nop\n\t" /* not the instructions that are sought */
	"ret\n"
	"own_restorer:\n\t"
	"mov $15, %eax\n\t"
	"syscall\n\t"
	"nop\n" /* at which it counts as being made */
	"own_code_end:\n");

static void execute_call(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	told_of_handler->handled++;
	regs[REG_RAX] = own_syscall(regs[REG_RAX], regs[REG_RDI], regs[REG_RSI], regs[REG_RDX],
				    regs[REG_R10], regs[REG_R8], regs[REG_R9]);
}

/* As emulators do. */
static void run_emulating(struct told *told)
{
	static char blocks = 1; /* SYSCALL_DISPATCH_FILTER_BLOCK */
	const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = {execute_call, SA_SIGINFO | SA_NODEFER | 0x04000000, own_restorer, 0};

	told_of_handler = told;
	told->error = own_syscall(SYS_rt_sigaction, SIGSYS, (long)&action, 0, 8, 0, 0) != 0;
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, own_code,
		  own_code_end - own_code, &blocks))
		told->error = errno;
	count(told);
	blocks = 0;
}

/* Where nobody tells, its handler stays all the same. */
static void calls_that_come_to_a_handler(void **state)
{
	const uint64_t none[6] = {0};
	struct target_process t;
	struct there r;
	int err;

	(void)state;
	start_target(&t, run_emulating);
	wait_ready(&t);
	if (t.told->error == EINVAL) /* before Linux 5.11 */
		return end_target(&t);
	assert_int_equal(t.told->error, 0);
	err = try_begin(&r, t.pid);
	assert_int_equal(err, is_dispatch_told() ? -ENOTSUP : 0);
	if (!err) {
		r.nr = SYS_getpid;
		memcpy(r.args, none, sizeof(none));
		assert_int_equal(ask_there(&r), -EFAULT);
		end_there(&r);
	}
	assert_goes_on(&t);
	assert_true(t.told->handled > 0);
	end_target(&t);
}

static struct told *told_of_other;

/* Waits in a call that would fail if it was not made again. */
static void count_other(void)
{
	struct told *told = told_of_other;
	struct epoll_event event;
	int epoll = epoll_create1(0);

	while (!told->over) {
		told->ready = 1;
		told->wrong += epoll_wait(epoll, &event, 1, 30) != 0;
		told->rounds++;
	}
	_exit(0);
}

/* On a stack of a coroutine, or like one of Go's: below it is memory of somebody else. */
static void run_coroutine(struct told *told)
{
	static char stack[65536];
	ucontext_t context, back;

	told_of_other = told;
	getcontext(&context);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof(stack);
	context.uc_link = NULL;
	makecontext(&context, count_other, 0);
	swapcontext(&back, &context);
}

static void a_small_stack(void **state)
{
	struct target_process t;

	(void)state;
	start_target(&t, run_coroutine);
	wait_ready(&t);
	for (int i = 0; i < 20; i++) {
		wait_state(t.pid, 'S');
		assert_refused_as(t.pid, -ENOTSUP, "uses a stack that may have no room");
	}
	assert_goes_on(&t);
	end_target(&t);
}

/* A program that executes pause(2) for ever. */
static int make_32_bit(void)
{
	const uint8_t code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
	const Elf32_Ehdr head = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_386,
		.e_version = EV_CURRENT,
		.e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
		.e_phoff = sizeof(Elf32_Ehdr),
		.e_ehsize = sizeof(Elf32_Ehdr),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 1,
	};
	const Elf32_Phdr load = {
		.p_type = PT_LOAD,
		.p_vaddr = 0x10000,
		.p_filesz = sizeof(head) + sizeof(load) + sizeof(code),
		.p_memsz = sizeof(head) + sizeof(load) + sizeof(code),
		.p_flags = PF_R | PF_X,
		.p_align = 4096,
	};
	int fd = memfd_create("pause32", 0);

	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	assert_int_equal(write(fd, &load, sizeof(load)), sizeof(load));
	assert_int_equal(write(fd, code, sizeof(code)), sizeof(code));
	return fd;
}

static void a_32_bit_process(void **state)
{
	char *const argv[] = {"pause32", NULL};
	int fd = make_32_bit();
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fexecve(fd, argv, argv + 1);
		_exit(1);
	}
	usleep(100000);
	if (waitpid(pid, &status, WNOHANG) == pid)
		skip(); /* the kernel executes no such programs */
	assert_refused_as(pid, -ENOTSUP, "is a 32-bit process");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
}

static void a_process_that_is_not_there(void **state)
{
	struct there r;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(try_begin(&r, pid), -ESRCH);
}

/* It is killed while a thread is held. */
static void one_that_ends(void **state)
{
	struct target_process t;
	struct there r;

	(void)state;
	start_target(&t, count);
	wait_ready(&t);
	begin_there(&r, t.pid);
	kill(t.pid, SIGKILL);
	assert_int_equal(ask_there(&r), -ESRCH);
	assert_int_equal(ask_there(&r), -ESRCH);
	end_there(&r);
	release_target(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seccomp_filter),
		cmocka_unit_test(another_tracer),
		cmocka_unit_test(a_thread_that_cannot_be_stopped),
		cmocka_unit_test(dispatched_calls),
		cmocka_unit_test(calls_that_come_to_a_handler),
		cmocka_unit_test(a_small_stack),
		cmocka_unit_test(a_32_bit_process),
		cmocka_unit_test(a_process_that_is_not_there),
		cmocka_unit_test(one_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
