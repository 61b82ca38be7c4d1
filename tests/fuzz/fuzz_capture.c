/* fuzz_capture.c - whole unwinds: an input is registers, the bytes of a stack, and an ELF image
 *
 * One byte of event flags, two with the length of the stack, 17 registers, the stack from rsp
 * upwards, the image, which is mapped as a whole to 4 MiB.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unwind_once.h"
#include "unwind/dwunw.h"

#define MEMORY_MAX (256u << 20)
#define MAX_FRAMES 16384
#define LOADED	   0x400000ull
#define PATH	   "/nonexistent/mleak-fuzz/module"

struct input {
	struct dwunw_regset regs;
	struct dwunw_stack stack;
};

struct result {
	struct dwunw_frame frame[MAX_FRAMES];
	int nr;
	enum dwunw_status status;
};

static void take_input(struct input *input, struct fuzz_in *in)
{
	uint64_t regs[DWUNW_MAX_ARCH_REGS];
	uint32_t flags = (uint32_t)fuzz_take(in, 1);
	size_t len = fuzz_take(in, 2);

	for (int r = 0; r < DWUNW_MAX_ARCH_REGS; r++)
		regs[r] = fuzz_take(in, 8);
	FUZZ_CHECK(dwunw_regset_prepare(&input->regs, regs, DWUNW_MAX_ARCH_REGS, flags) == 0);
	if (len > fuzz_left(in))
		len = fuzz_left(in);
	input->stack = (struct dwunw_stack){regs[DWUNW_X86_64_RSP], in->at, len};
	in->at += len;
}

static void capture(struct dwunw_space *space, const struct input *input, struct result *r)
{
	r->status = DWUNW_STATUS_NR;
	r->nr = unwind_once(space, PLAIN_SAMPLE(&input->regs, &input->stack), r->frame, MAX_FRAMES,
			    &r->status);
	FUZZ_CHECK(r->nr >= 1 && r->nr <= MAX_FRAMES && r->status < DWUNW_STATUS_NR);
}

/* Each frame but the first is further up in the stack; past its end there is at most the frame that
 * a signal interrupted, and one more that was called from there. */
static void check_result(const struct input *input, const struct result *r)
{
	const struct dwunw_frame *last = &r->frame[r->nr - 1];

	FUZZ_CHECK((size_t)r->nr <= input->stack.len + 3);
	FUZZ_CHECK(r->status != DWUNW_STATUS_FRAME_LIMIT || r->nr == MAX_FRAMES);
	FUZZ_CHECK(r->frame[0].pc == input->regs.reg[DWUNW_X86_64_RIP]);
	FUZZ_CHECK(!(last->flags & DWUNW_FRAME_FLAG_PARTIAL) == (r->status == DWUNW_STATUS_ENDED));
	for (int i = 0; i < r->nr - 1; i++)
		FUZZ_CHECK(!(r->frame[i].flags & DWUNW_FRAME_FLAG_PARTIAL));
	for (int i = 0; i < r->nr; i++)
		FUZZ_CHECK(r->frame[i].module == 0 ? r->frame[i].pc >= LOADED - 1
						   : r->frame[i].module == DWUNW_NO_MODULE);
}

/* @less was found by fewer bytes, or by as many. */
static void check_prefix(const struct result *less, const struct result *more)
{
	FUZZ_CHECK(less->nr <= more->nr);
	for (int i = 0; i < less->nr; i++)
		FUZZ_CHECK(less->frame[i].pc == more->frame[i].pc &&
			   less->frame[i].addr == more->frame[i].addr &&
			   less->frame[i].module == more->frame[i].module);
}

static void unwind(struct dwunw_space *space, struct input *input)
{
	static struct result all, again, less;

	capture(space, input, &all);
	check_result(input, &all);
	capture(space, input, &again);
	check_prefix(&again, &all);
	FUZZ_CHECK(again.nr == all.nr && again.status == all.status);
	/* Half a stack must not pass for a whole one, at whose end an address is none of code. */
	input->stack.len /= 2;
	input->regs.flags |= DWUNW_EVENT_STACK_LIMIT;
	capture(space, input, &less);
	check_result(input, &less);
	check_prefix(&less, &all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dwunw_mapping map = {.start = LOADED, .end = 2 * LOADED};
	struct fuzz_in in = {data, data + size};
	struct dwunw_space *space;
	struct input input;
	struct dwunw *dw;
	uint32_t module;
	int err;

	fuzz_memory_limit(MEMORY_MAX);
	take_input(&input, &in);
	FUZZ_CHECK(dwunw_new(&dw) == 0);
	err = dwunw_module_add(dw, &module, PATH, in.at, fuzz_left(&in));
	FUZZ_CHECK(!err || err == DWUNW_ERR_ELF || err == DWUNW_ERR_ARCH);
	if (!err) {
		FUZZ_CHECK(dwunw_space_new(&space, dw, &map, 1) == 0);
		unwind(space, &input);
		dwunw_space_free(space);
	}
	dwunw_free(dw);
	return 0;
}
