/* stress_signals.c - signal handlers that allocate: raised, by a timer, and after each instruction
 *
 * Only allocate() may be in malloc when a signal comes: its locks are held.
 */
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "stress.h"

enum { ALT_BYTES = 65536, TRAP_FLAG = 0x100, TICKS = 200 };

static volatile int steps_left, ticks;

static void on_signal(int number)
{
	char block[64];

	KEEP(block);
	allocate();
	if (number == SIGUSR1)
		raise(SIGUSR2);
	AFTER_CALL();
}

static void on_tick(int number)
{
	(void)number;
	if (ticks >= TICKS)
		return; /* where handlers take longer than the timer, more come */
	allocate();
	ticks++;
}

/* From the end of the handler on: a SIGTRAP after each instruction, or no more. */
static void on_toggle(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	if (steps_left > 0)
		uc->uc_mcontext.gregs[REG_EFL] ^= TRAP_FLAG;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	if (allocating())
		step_later();
	else
		allocate();
	if (allocating() || --steps_left <= 0)
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	must(!sigaction(number, &action, NULL), "sigaction");
}

static void handle_info(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	must(!sigaction(number, &action, NULL), "sigaction");
}

static void set_alternate(void *stack)
{
	const stack_t alternate = {.ss_sp = stack, .ss_size = ALT_BYTES};

	must(!sigaltstack(&alternate, NULL), "sigaltstack");
}

static FRAME void raise_in_frame(void)
{
	raise(SIGUSR1);
	AFTER_CALL();
}

static FRAME void raise_both(void)
{
	static char in_data[ALT_BYTES];

	handle(SIGUSR1, on_signal, 0);
	handle(SIGUSR2, on_signal, 0);
	raise_in_frame();
	/* The inner handler goes on the stack of the outer. */
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	handle(SIGUSR2, on_signal, SA_ONSTACK);
	set_alternate(in_data);
	raise_in_frame();
	set_alternate(
		mmap(NULL, ALT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	raise_in_frame();
}

/* Faults: the interrupted instruction is the one to be repeated. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	allocate();
	uc->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
}

static FRAME void fault(void)
{
	__asm__ volatile("ud2");
	AFTER_CALL();
}

static FRAME double work(double x)
{
	double y = sin(x) + exp(x) * cos(x);

	return y * y + sqrt(x);
}

static FRAME void interrupted(int flags)
{
	const struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
	volatile double sum = 0;

	ticks = 0;
	handle(SIGALRM, on_tick, flags | SA_RESTART);
	must(!setitimer(ITIMER_REAL, &often, NULL), "setitimer");
	while (ticks < TICKS) {
		for (int i = 1; i < 50; i++)
			sum = sum + work(i);
		asm_saved_in_red_zone();
	}
	must(!setitimer(ITIMER_REAL, &never, NULL), "setitimer");
}

void stress_signals(void)
{
	raise_both();
	handle_info(SIGILL, on_fault);
	fault();
	interrupted(0);
	interrupted(SA_ONSTACK);
}

static void toggle(void)
{
	raise(SIGUSR2);
}

void stress_steps(int max)
{
	handle_info(SIGUSR2, on_toggle);
	handle_info(SIGTRAP, on_trap);
	for (int i = 0; i < FRAMES_PIECES; i++) {
		steps_left = max;
		toggle();
		frames_piece(i);
		toggle();
	}
	steps_left = max;
	load_bind(toggle);
}
