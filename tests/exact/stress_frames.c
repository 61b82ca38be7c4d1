/* stress_frames.c - frames of all kinds in one thread without signals */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "stress.h"

enum { DEEP = 10000, COROUTINE_BYTES = 65536 };

static jmp_buf jump;
static ucontext_t main_context, coroutine[2];
static int sink;
/* The compiler cannot know it. */
static volatile int three = 3;

static FRAME void use_alloca(void)
{
	char *block = __builtin_alloca((size_t)three * 100);

	KEEP(block);
	allocate();
	KEEP(block);
}

static FRAME void use_vla(void)
{
	char block[three * 40];

	KEEP(block);
	allocate();
	KEEP(block);
}

/* The stack pointer is rounded down; arguments are reached by a register of their own. */
static FRAME void over_aligned(long a, long b, long c, long d, long e, long f, long g)
{
	_Alignas(64) char block[128];
	char vla[three * 16];

	KEEP(block);
	KEEP(vla);
	sink += (int)(a + b + c + d + e + f + g);
	allocate();
	KEEP(block);
}

static FRAME void call_over_aligned(void)
{
	over_aligned(1, 2, 3, 4, 5, 6, 7);
	AFTER_CALL();
}

static int compare(const void *a, const void *b)
{
	allocate();
	return *(const int *)a - *(const int *)b;
}

static FRAME void use_qsort(void)
{
	int numbers[8] = {3, 1, 4, 1, 5, 9, 2, 6};

	qsort(numbers, 8, sizeof(int), compare);
	KEEP(numbers);
}

static FRAME void tail_called(void)
{
	char block[50];

	KEEP(block);
	allocate();
	KEEP(block);
}

/* With optimisation a jump. */
static FRAME void tail_call(void)
{
	char block[300];

	memset(block, 0, sizeof(block));
	KEEP(block);
	tail_called();
}

static FRAME void many_registers(long depth)
{
	long a = depth * 3, b = depth ^ 5, c = depth + 7, d = depth * 11, e = depth - 13;

	if (depth)
		many_registers(depth - 1);
	else
		allocate();
	AFTER_CALL();
	sink += (int)(a + b + c + d + e);
}

static FRAME void twenty_frames(void)
{
	many_registers(20);
	AFTER_CALL();
}

static FRAME void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	else
		allocate();
	AFTER_CALL();
}

static FRAME void jump_out(void)
{
	allocate();
	longjmp(jump, 1);
}

static FRAME void jump_back(void)
{
	if (setjmp(jump))
		allocate();
	else
		jump_out();
	AFTER_CALL();
}

static FRAME void jump_from_last_call(void)
{
	if (!setjmp(jump))
		asm_noreturn(jump_out);
	AFTER_CALL();
}

__attribute__((noreturn)) static FRAME void never_returns(void)
{
	jump_out();
	abort();
}

/* A compiler's call as last instruction. */
static FRAME void ends_in_call(int deeper)
{
	char block[120];

	KEEP(block);
	if (deeper)
		sink++;
	never_returns();
}

static FRAME void jump_from_noreturn(void)
{
	if (!setjmp(jump))
		ends_in_call(three);
	AFTER_CALL();
}

static void coroutine_run(int other)
{
	allocate();
	swapcontext(&coroutine[!other], &coroutine[other]);
	use_alloca();
	/* The first goes back to main for both. */
	swapcontext(&coroutine[!other], other ? &coroutine[1] : &main_context);
}

static void make_coroutine(int number, void *stack)
{
	must(stack && stack != MAP_FAILED && !getcontext(&coroutine[number]), "getcontext");
	coroutine[number].uc_stack.ss_sp = stack;
	coroutine[number].uc_stack.ss_size = COROUTINE_BYTES;
	coroutine[number].uc_link = &main_context;
	makecontext(&coroutine[number], (void (*)(void))coroutine_run, 1, !number);
}

/* One on a stack of mmap's, one inside of the heap. */
static FRAME void use_coroutines(void)
{
	make_coroutine(0, mmap(NULL, COROUTINE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	make_coroutine(1, malloc(COROUTINE_BYTES));
	must(!swapcontext(&main_context, &coroutine[0]), "swapcontext");
	allocate();
}

static FRAME void use_asm(void)
{
	asm_expression(allocate);
	asm_expression(call_over_aligned);
	asm_cfa_in_rbx(twenty_frames);
	asm_cfa_in_rbx(use_alloca);
	asm_push_pop(use_vla);
	asm_saved_in_red_zone();
	AFTER_CALL();
}

/* A leaf that uses the bytes below rsp. */
static FRAME long leaf(long n)
{
	volatile long in_red_zone[12];
	long sum = 0;

	for (int i = 0; i < 12; i++)
		in_red_zone[i] = n + i;
	for (int i = 0; i < 12; i++)
		sum += in_red_zone[i];
	return sum;
}

static FRAME void call_leaf(void)
{
	sink += (int)leaf(three);
	AFTER_CALL();
}

void frames_piece(int number)
{
	static void (*const pieces[FRAMES_PIECES])(void) = {
		use_alloca, call_over_aligned,	use_qsort, tail_call,		twenty_frames,
		jump_back,  jump_from_noreturn, use_asm,   jump_from_last_call,
	};

	call_leaf();
	pieces[number]();
	AFTER_CALL();
}

void stress_frames(void)
{
	for (int i = 0; i < FRAMES_PIECES; i++)
		frames_piece(i);
	use_vla();
	use_coroutines();
	deep(DEEP);
	AFTER_CALL();
}
