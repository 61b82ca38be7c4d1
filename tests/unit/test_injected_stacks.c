/* test_injected_stacks.c - registers and stacks, as the code that is put into targets records them
 */
#include <pthread.h>

#include "tests/unit/injected_world.h"

static uint64_t next_block;

ALLOCATOR static void *fake(size_t size)
{
	return (void *)(next_block += size);
}

static void *put_malloc(void)
{
	return world_put(FUNC_MALLOC, "malloc", (void *)fake);
}

/* What a call's caller has in its registers, and on its stack. */
static struct marked {
	uint64_t regs[6]; /* rbx rbp r12 r13 r14 r15: to be set; then what they are behind the call
			   */
	uint64_t sp, pc;
	uint8_t stack[512];
} marked;

/* Call @fn with @arg as marked says. */
void *call_marked(void *fn, uint64_t arg);
__asm__("	.text\n"
	"call_marked:\n"
	"	pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"	subq $264, %rsp\n"
	"	leaq marked(%rip), %rdx\n"
	"	movq (%rdx), %rbx; movq 8(%rdx), %rbp; movq 16(%rdx), %r12\n"
	"	movq 24(%rdx), %r13; movq 32(%rdx), %r14; movq 40(%rdx), %r15\n"
	"	movq %rsp, 48(%rdx)\n"
	"	leaq 1f(%rip), %rax; movq %rax, 56(%rdx)\n"
	"	movq %rdi, %rax; movq %rsi, %rdi\n"
	"	call *%rax\n"
	"1:	leaq marked(%rip), %rdx\n"
	"	movq %rbx, (%rdx); movq %rbp, 8(%rdx); movq %r12, 16(%rdx)\n"
	"	movq %r13, 24(%rdx); movq %r14, 32(%rdx); movq %r15, 40(%rdx)\n"
	"	leaq 64(%rdx), %rdi; movq %rsp, %rsi; movl $512, %ecx; rep movsb\n"
	"	addq $264, %rsp\n"
	"	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx\n"
	"	ret\n");

static void mark(uint64_t value)
{
	for (int i = 0; i < 6; i++)
		marked.regs[i] = value * 100 + (uint64_t)i;
}

static void expect_marked(const struct seen *s, uint64_t value)
{
	static const enum event_reg regs[6] = {EVENT_RBX, EVENT_RBP, EVENT_R12,
					       EVENT_R13, EVENT_R14, EVENT_R15};

	for (int i = 0; i < 6; i++) {
		assert_int_equal(s->regs[regs[i]], value * 100 + (uint64_t)i);
		assert_int_equal(marked.regs[i], value * 100 + (uint64_t)i);
	}
	assert_int_equal(s->regs[EVENT_RSP], marked.sp);
	assert_int_equal(s->regs[EVENT_RIP], marked.pc);
	assert_true(s->stack_len >= sizeof(marked.stack));
	assert_memory_equal(s->stack, marked.stack, sizeof(marked.stack));
	assert_false(s->flags & DWUNW_EVENT_STACK_UNBOUNDED);
}

static void *call_and_expect(void *my_malloc)
{
	uint64_t value = 1;

	for (; value < 50; value++) {
		mark(value);
		call_marked(my_malloc, value);
		world_take_all();
		expect_marked(&world.seen[world.nr_seen - 1], value);
	}
	return NULL;
}

static void registers_and_stack_are_those_of_the_caller(void **state)
{
	void *my_malloc = put_malloc();
	const struct seen *last;

	(void)state;
	world.keeps_stacks = true;
	call_and_expect(my_malloc);
	last = &world.seen[world.nr_seen - 1];
	assert_int_equal(last->regs[EVENT_RSP] + last->stack_len, world.injected->main_stack.end);
}

static void so_they_are_in_another_thread(void **state)
{
	void *my_malloc = put_malloc();
	const struct seen *last;
	pthread_t thread;

	(void)state;
	world.keeps_stacks = true;
	assert_int_equal(pthread_create(&thread, NULL, call_and_expect, my_malloc), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	last = &world.seen[world.nr_seen - 1];
	assert_int_equal(last->regs[EVENT_RSP] + last->stack_len, thread);
}

/* Allocate @size bytes on the stack that ends at @top. */
static void call_on_stack(void *my_malloc, uint64_t top, uint64_t size)
{
	void *was;

	__asm__ volatile("movq %%rsp, %0; leaq -16(%1), %%rsp; movq %3, %%rdi; call *%2; "
			 "movq %0, %%rsp"
			 : "=&b"(was)
			 : "r"(top), "r"(my_malloc), "r"(size)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
			   "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* On a stack that is not the thread's only the page at hand is read. */
static void expect_unbounded(uint64_t top, uint64_t size)
{
	const struct seen *last;

	world_take_all();
	last = &world.seen[world.nr_seen - 1];
	assert_int_equal(last->size, size);
	assert_int_equal(last->regs[EVENT_RSP], top - 16);
	assert_int_equal(last->stack_len, 16);
	assert_true(last->flags & DWUNW_EVENT_STACK_UNBOUNDED);
}

static void of_an_unknown_stack_little_is_read(void **state)
{
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t top = (uint64_t)pages + 2 * 4096;

	(void)state;
	assert_int_equal(mprotect(pages, 2 * 4096, PROT_READ | PROT_WRITE), 0);
	call_on_stack(put_malloc(), top, 7);
	expect_unbounded(top, 7);
	munmap(pages, 3 * 4096);
}

/* A coroutine's stack, a guard page, and a thread's own stack. */
#define COROUTINE (4 * 4096u)
#define OWN_STACK (64 * 4096u)

static uint8_t *stacks;

static void *allocate_on_both(void *my_malloc)
{
	uint64_t top = (uint64_t)stacks + COROUTINE;

	for (uint64_t i = 1; i < 5; i++) {
		mark(i);
		call_marked(my_malloc, i);
		world_take_all();
		expect_marked(&world.seen[world.nr_seen - 1], i);
		call_on_stack(my_malloc, top, i);
		expect_unbounded(top, i);
	}
	return NULL;
}

static void a_threads_stack_ends_at_its_guard_page(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t bytes = COROUTINE + 4096 + OWN_STACK;

	(void)state;
	world.keeps_stacks = true;
	stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mprotect(stacks + COROUTINE, 4096, PROT_NONE), 0);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stacks + COROUTINE + 4096, OWN_STACK);
	assert_int_equal(pthread_create(&thread, &attr, allocate_on_both, put_malloc()), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(world.nr_seen, 8);
	pthread_attr_destroy(&attr);
	munmap(stacks, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(registers_and_stack_are_those_of_the_caller),
		IN_WORLD(so_they_are_in_another_thread),
		IN_WORLD(of_an_unknown_stack_little_is_read),
		IN_WORLD(a_threads_stack_ends_at_its_guard_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
