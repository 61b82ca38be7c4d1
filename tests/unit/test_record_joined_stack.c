/* test_record_joined_stack.c - a stack of the kernel that goes on in this very program, as libdwunw
 * walks it: what libgcc says of the program is the rest */
#include <elf.h>
#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/kernel/joined_stack.h"
#include "record/target/maps.h"
#include "unwind/dwunw.h"

#define START	KERNEL_STACKS_TEXT
#define END	(KERNEL_STACKS_TEXT + 0x1000000)
#define ENTRY	(KERNEL_STACKS_ENTRY + 24)
#define PAGE	4096
#define MOST	64
#define MODULES 32

static const struct kernel_function functions[] = {
	{.addr = START + 0x1000, .size = 0x100, .name = "alloc"},
	{.addr = START + 0x2000, .size = 0x40, .name = "do_syscall_64"},
};

static const struct kernel_function entries[] = {
	{.addr = KERNEL_STACKS_ENTRY + 16, .size = 16, .name = "entry_SYSCALL_64"},
};

static const struct kernel_stack of_kernel = {
	.known = true,
	.nr = 3,
	.entry = ENTRY,
	.pcs = {START + 0x1010, START + 0x2020, START + 0x3030},
};

/* An address space with the modules that it is made of; images are kept until its end. */
struct world {
	struct dwunw *dw;
	struct dwunw_space *space;
	struct dwunw_mapping maps[MODULES];
	uint8_t *images[MODULES];
	size_t nr;
};

static void add(struct world *w, struct dwunw_mapping map, const char *name, uint8_t *image,
		size_t len)
{
	assert_true(w->nr < MODULES);
	assert_int_equal(dwunw_module_add(w->dw, &map.module, name, image, len), 0);
	w->images[w->nr] = image;
	w->maps[w->nr++] = map;
}

static uint8_t *read_file(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(32 << 20);

	assert_non_null(file);
	assert_non_null(bytes);
	*len = fread(bytes, 1, 32 << 20, file);
	fclose(file);
	return bytes;
}

static void add_program(struct world *w)
{
	struct maps maps = {0};
	uint8_t *image;
	size_t len;

	assert_int_equal(maps_read(&maps, getpid()), 0);
	maps_keep_code(&maps);
	for (size_t i = 0; i < maps.nr; i++) {
		const struct mlk_mapping *m = &maps.v[i];

		if (m->path[0] != '/')
			continue;
		image = read_file(m->path, &len);
		add(w,
		    (struct dwunw_mapping){
			    .start = m->start, .end = m->end, .file_offset = m->offset},
		    m->path, image, len);
	}
	maps_release(&maps);
}

static void add_kernel(struct world *w)
{
	const struct kernel_image entry = {.start = KERNEL_STACKS_ENTRY,
					   .end = KERNEL_STACKS_ENTRY + 1024,
					   .has_regs = true,
					   .functions = entries,
					   .nr = 1};
	const struct kernel_image kernel = {
		.start = START, .end = END, .functions = functions, .nr = 2};
	const struct kernel_image *all[] = {&entry, &kernel};
	uint8_t *bytes;
	size_t len;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(kernel_image_make(all[i], &bytes, &len), 0);
		add(w, (struct dwunw_mapping){.start = all[i]->start, .end = all[i]->end},
		    i ? "[kernel]" : "[entry]", bytes, len);
	}
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(dwunw_new(&w->dw), 0);
	add_program(w);
	add_kernel(w);
	assert_int_equal(dwunw_space_new(&w->space, w->dw, w->maps, w->nr), 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	dwunw_space_free(w->space);
	dwunw_free(w->dw);
	for (size_t i = 0; i < w->nr; i++)
		free(w->images[i]);
	free(w);
	return 0;
}

/* Where struct pt_regs has the registers of a context: arch/x86/include/asm/ptrace.h. */
static void put_regs(struct kmem_user *user, const ucontext_t *at)
{
	static const int order[KMEM_REGS_NR] = {
		REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX, REG_R11,
		REG_R10, REG_R9,  REG_R8,  REG_RAX, REG_RCX, REG_RDX, REG_RSI,
		REG_RDI, REG_RAX, REG_RIP, -1,	    REG_EFL, REG_RSP, -1};

	for (int i = 0; i < KMEM_REGS_NR; i++)
		user->regs[i] = order[i] < 0 ? 0 : (uint64_t)at->uc_mcontext.gregs[order[i]];
}

/* Whole stacks are read, with what a sanitizer keeps between variables. */
__attribute__((no_sanitize("address"))) static void copy_bytes(uint8_t *to,
							       const volatile uint8_t *from,
							       size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i];
}

/* What is copied at a system call: two pages, the first of them from the stack pointer on. */
static void put_stack(struct kmem_user *user, uint32_t len)
{
	uint64_t sp = user->regs[KMEM_REGS_SP];

	user->len = len ? len : KMEM_USER_STACK - (uint32_t)(sp % PAGE);
	copy_bytes(user->stack + sp % PAGE, (const volatile uint8_t *)sp, user->len);
}

static struct dwunw_result walk(struct world *w, const struct joined_stack *joined,
				struct dwunw_frame *frames)
{
	uint64_t regs[DWUNW_MAX_ARCH_REGS] = {
		[DWUNW_X86_64_RSP] = joined->sp, [DWUNW_X86_64_RIP] = joined->pc};
	const struct dwunw_stack stack = {
		.addr = joined->sp, .bytes = joined->bytes, .len = joined->len};
	struct dwunw_regset set;
	const struct dwunw_sample sample = {.regs = &set,
					    .stack = &stack,
					    .stale_from = UINT64_MAX,
					    .unchanged_from = UINT64_MAX};
	struct dwunw_result result;

	assert_int_equal(dwunw_regset_prepare(&set, regs, DWUNW_MAX_ARCH_REGS,
					      DWUNW_EVENT_RETURN_ADDRESS | joined->flags),
			 0);
	assert_int_equal(dwunw_capture(w->space, &sample, frames, MOST, &result), 0);
	return result;
}

/* What was seen at some depth: return addresses by libgcc, and a copy. */
static struct {
	void *pcs[MOST];
	int nr;
	struct kmem_user user;
	uint32_t len; /* of the stack, that is to be copied; 0: as much as at a system call */
} seen;

/* At least a page of the stack is copied, so locals are small. */
__attribute__((noipa)) static void go_deeper(int deep)
{
	volatile char filler[16];
	static ucontext_t at;

	filler[0] = (char)deep;
	if (deep) {
		go_deeper(deep - 1);
		filler[1] = filler[0];
		return;
	}
	seen.nr = backtrace(seen.pcs, MOST);
	assert_int_equal(getcontext(&at), 0);
	put_regs(&seen.user, &at);
	put_stack(&seen.user, seen.len);
	filler[1] = filler[0];
}

static void the_rest_is_what_libgcc_says(void **state)
{
	static struct joined_stack joined;
	static struct dwunw_frame frames[MOST];
	static struct dwunw_symbol symbols[MOST];
	struct dwunw_result result;
	struct world *w = *state;
	int skipped;

	seen.len = 0;
	go_deeper(5);
	joined_stack_make(&joined, &of_kernel, &seen.user);
	result = walk(w, &joined, frames);
	assert_true(seen.nr >= 8 && result.nr_frames >= 3u + 7);
	assert_true(frames[0].pc == of_kernel.pcs[0] && frames[1].pc == of_kernel.pcs[1]);
	assert_true(frames[2].pc == ENTRY);
	assert_true(frames[3].pc == seen.user.regs[KMEM_REGS_PC]);
	/* The first of libgcc's is the function itself, at another place; a sanitizer puts its own
	 * before that. */
	skipped = (uint64_t)seen.pcs[1] == frames[4].pc ? 3 : 2;
	for (int i = 4 - skipped; i < seen.nr && (unsigned int)(i + skipped) < result.nr_frames;
	     i++)
		assert_true(frames[i + skipped].pc == (uint64_t)seen.pcs[i]);
	assert_int_equal(dwunw_symbol_resolve_batch(w->dw, frames, 4, symbols), 0);
	assert_string_equal(symbols[1].function, "do_syscall_64");
	assert_string_equal(symbols[2].function, "entry_SYSCALL_64");
	assert_string_equal(symbols[3].function, "go_deeper");
}

static void a_copy_that_ends_early_says_so(void **state)
{
	static struct joined_stack joined;
	static struct dwunw_frame frames[MOST];
	struct dwunw_result result;

	seen.len = 64;
	go_deeper(5);
	joined_stack_make(&joined, &of_kernel, &seen.user);
	result = walk(*state, &joined, frames);
	assert_int_equal(result.status, DWUNW_STATUS_TRUNCATED);
	assert_true(result.nr_frames >= 4 && result.nr_frames < (unsigned int)seen.nr);
	assert_true(joined.flags & DWUNW_EVENT_STACK_UNBOUNDED);
}

static void without_a_copy_it_ends_in_the_kernel(void **state)
{
	struct kernel_stack cut = of_kernel, inside = of_kernel;
	struct kmem_user user = {.addr = 1, .len = 8};
	static struct joined_stack joined;
	static struct dwunw_frame frames[MOST];
	struct dwunw_result result;

	joined_stack_make(&joined, &of_kernel, NULL);
	result = walk(*state, &joined, frames);
	assert_int_equal(result.status, DWUNW_STATUS_ENDED);
	assert_int_equal(result.nr_frames, 3);
	assert_true(frames[2].pc == of_kernel.pcs[2]);

	inside.entry = 0; /* an interrupt's: the copy is of what was interrupted */
	joined_stack_make(&joined, &inside, &user);
	result = walk(*state, &joined, frames);
	assert_int_equal(result.status, DWUNW_STATUS_ENDED);
	assert_int_equal(result.nr_frames, 3);

	cut.what = KERNEL_STACK_CUT;
	joined_stack_make(&joined, &cut, NULL);
	assert_int_equal(walk(*state, &joined, frames).status, DWUNW_STATUS_TRUNCATED);
}

static void no_stack_at_all_has_no_frames(void **state)
{
	const struct kernel_stack none = {0};
	static struct joined_stack joined;

	(void)state;
	joined_stack_make(&joined, &none, NULL);
	assert_true(!joined.pc && joined.len == sizeof(uint64_t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rest_is_what_libgcc_says),
		cmocka_unit_test(a_copy_that_ends_early_says_so),
		cmocka_unit_test(without_a_copy_it_ends_in_the_kernel),
		cmocka_unit_test(no_stack_at_all_has_no_frames),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
