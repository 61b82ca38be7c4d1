/* event_unwinder_world.h - for the tests of the events' unwinder: a program, a thread and its
 * memory
 *
 * The program that is unwound is made here: an ELF image that is only call frame information.  What
 * a stack must come to follows from the words that a test wrote to the thread's memory and from
 * unwind/dwunw_capture.h.
 */
#ifndef TESTS_EVENT_UNWINDER_WORLD_H
#define TESTS_EVENT_UNWINDER_WORLD_H

#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/decode/event_unwinder.h"
#include "report/stats/stacks.h"
#include "tests/unit/unwind_cfi_image.h"

/* The program, mapped at MAP: functions by their addresses in the file.  Each frame of body() is 16
 * bytes: a local variable and the return address.  first() has no caller.  Of blind() nothing is
 * known. */
#define MAP	  0x400000ull
#define OTHER_MAP 0x800000ull
#define BODY	  0x4000ull
#define FIRST	  0x6000ull
#define BLIND	  0x7000ull
#define IMAGE_LEN 0x8000
#define FRAME_LEN 16

/* The memory of the thread: byte i is at BASE + i. */
#define BASE  0x7fff00000000ull
#define ROOM  (2 * FRAME_LEN * STACK_MAX_FRAMES)
#define LOCAL 0x5ca1ab1eull /* a word that is no address of code */
static uint8_t memory[ROOM];

#define PID   42
#define TID   43
#define RAW   true
#define NEVER UINT64_MAX /* no byte is older than the event */

struct fixture {
	struct dwunw *dw;
	struct trace_modules *modules;
	struct address_spaces *spaces;
	struct stack_history *history;
	struct event_unwinder *unwinder;
};

static inline void put(uint8_t *to, size_t *len, uint64_t number, size_t size)
{
	memcpy(to + *len, &number, size);
	*len += size;
}

static inline void put_fde(uint8_t *to, size_t *len, uint64_t start, uint64_t code_len,
			   uint32_t program)
{
	put(to, len, 4 + 16 + 4, 4);
	put(to, len, *len, 4); /* the CIE is at the beginning */
	put(to, len, start, 8);
	put(to, len, code_len, 8);
	put(to, len, program, 4);
}

/* The call frame information of body() and first(), and nothing behind it. */
static inline void make_eh_frame(uint8_t eh[IMAGE_LEN])
{
	static const uint8_t cie[] = {
		1, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, FRAME_LEN, DW_CFA_offset | 16, 1, 0, 0};
	size_t len = 0;

	put(eh, &len, 4 + sizeof(cie), 4);
	put(eh, &len, 0, 4);
	memcpy(eh + len, cie, sizeof(cie));
	len += sizeof(cie);
	put_fde(eh, &len, BODY, FIRST - BODY, 0);
	put_fde(eh, &len, FIRST, 0x100, DW_CFA_undefined | 16 << 8);
}

static inline struct mlk_id program_id(void)
{
	return (struct mlk_id){.len = 2, .bytes = {MLK_ID_BUILD_ID, 1}};
}

static inline void add_program(struct fixture *f)
{
	static uint8_t eh[IMAGE_LEN];
	struct cfi_image image = {.eh = eh, .eh_len = sizeof(eh)};
	struct mlk_module module = {.id = program_id(), .path = "/bin/program"};
	size_t len;
	uint8_t *bytes;

	make_eh_frame(eh);
	bytes = cfi_image_make(&image, &len);
	assert_non_null(bytes);
	module.image_len = len;
	module.piece = bytes;
	module.piece_len = (uint32_t)len;
	assert_int_equal(trace_modules_add_piece(f->modules, &module), 0);
	free(bytes);
}

/* From @time_ns on, the program is mapped at @start in process @tgid. */
static inline void add_maps(struct fixture *f, uint32_t tgid, uint64_t time_ns, uint64_t start)
{
	struct mlk_mapping mapping = {.start = start,
				      .end = start + IMAGE_LEN,
				      .perms = MLK_PERM_R | MLK_PERM_X,
				      .id = program_id(),
				      .path = "/bin/program"};
	struct mlk_maps maps = {.tgid = tgid, .time_ns = time_ns, .nr = 1, .mappings = &mapping};

	assert_int_equal(address_spaces_add(f->spaces, &maps, f->modules), 0);
}

static inline struct fixture start(bool raw)
{
	struct fixture f;

	memset(memory, 0, sizeof(memory));
	assert_int_equal(dwunw_new(&f.dw), 0);
	assert_int_equal(trace_modules_new(&f.modules), 0);
	assert_int_equal(address_spaces_new(&f.spaces), 0);
	add_program(&f);
	add_maps(&f, PID, 100, MAP);
	add_maps(&f, PID, 200, OTHER_MAP);
	add_maps(&f, PID + 1, 100, OTHER_MAP);
	add_maps(&f, PID + 2, 100, MAP);
	assert_int_equal(trace_modules_load(f.modules, f.dw), 0);
	assert_int_equal(address_spaces_prepare(f.spaces, f.modules, f.dw), 0);
	assert_int_equal(stack_history_new(&f.history, NULL, NULL), 0);
	assert_int_equal(event_unwinder_new(&f.unwinder, f.dw, f.spaces, raw), 0);
	event_unwinder_begin(f.unwinder, f.history);
	return f;
}

static inline void finish(struct fixture *f)
{
	event_unwinder_free(f->unwinder);
	stack_history_free(f->history);
	address_spaces_free(f->spaces);
	dwunw_free(f->dw);
	trace_modules_free(f->modules);
}

static inline void put_word(size_t at, uint64_t word)
{
	memcpy(memory + at, &word, sizeof(word));
}

static inline uint64_t word_at(size_t at)
{
	uint64_t word;

	memcpy(&word, memory + at, sizeof(word));
	return word;
}

/* Where the return address of frame @i is, when frame 0 begins at @from. */
static inline size_t return_slot(size_t from, size_t i)
{
	return from + FRAME_LEN * i + 8;
}

/* Write @nr frames of body(), the innermost at @from.  They return to @to and to the addresses
 * behind it, but the outermost to @last. */
static inline void lay_frames(size_t from, size_t nr, uint64_t to, uint64_t last)
{
	for (size_t i = 0; i < nr; i++) {
		put_word(from + FRAME_LEN * i, LOCAL);
		put_word(return_slot(from, i), i + 1 < nr ? to + i : last);
	}
}

/* The thread in body(), with the bytes [from, to) of its stack at hand. */
static inline struct mlk_event event_of(size_t from, size_t to, uint32_t flags)
{
	struct mlk_event e = {.kind = MLK_ALLOC,
			      .tgid = PID,
			      .tid = TID,
			      .time_ns = 150,
			      .flags = flags,
			      .nr_regs = DWUNW_MAX_ARCH_REGS,
			      .stack = memory + from,
			      .stack_len = (uint32_t)(to - from),
			      .stack_same_from = UINT64_MAX};

	e.regs[DWUNW_X86_64_RSP] = BASE + from;
	e.regs[DWUNW_X86_64_RIP] = MAP + BODY + 0x800;
	return e;
}

/* What a stack is to be: @nr frames of body() and of the outermost function, from @from on. */
struct expected {
	enum dwunw_status status;
	size_t nr;
	size_t from;
	uint64_t stale_from; /* offset of the first byte that is older than the event, or NEVER */
	uint64_t map;	     /* where the program is */
	uint32_t flags;	     /* of frame 0 */
	uint32_t guessed;    /* frames from this number on; 0: none */
};

static inline void check_frame(const struct dwunw_frame *frame, const struct mlk_event *event,
			       const struct expected *x, size_t i)
{
	uint64_t pc = i ? word_at(return_slot(x->from, i - 1)) : event->regs[DWUNW_X86_64_RIP];
	uint32_t flags = i ? DWUNW_FRAME_FLAG_RETURN : x->flags;

	if (i && return_slot(x->from, i - 1) + sizeof(pc) > x->stale_from)
		flags |= DWUNW_FRAME_FLAG_STALE;
	if (x->guessed && i >= x->guessed)
		flags |= DWUNW_FRAME_FLAG_GUESSED;
	if (i + 1 == x->nr && x->status != DWUNW_STATUS_ENDED)
		flags |= DWUNW_FRAME_FLAG_PARTIAL;
	assert_int_equal(frame->pc, pc);
	assert_int_equal(frame->addr, pc - x->map);
	assert_int_equal(frame->flags, flags);
	assert_int_equal(frame->module, 0);
}

static inline void check_stack(struct fixture *f, const struct mlk_event *event, struct expected x)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES + 1];
	uint32_t id = 0;
	size_t nr;

	if (!x.map)
		x.map = MAP;
	if (!x.stale_from)
		x.stale_from = NEVER;
	assert_int_equal(event_unwinder_stack(f->unwinder, event, &id), 0);
	assert_int_not_equal(id, 0);
	assert_int_equal(dwunw_stack_status(f->dw, id), x.status);
	nr = dwunw_stack_frames(f->dw, id, frames, STACK_MAX_FRAMES + 1);
	assert_int_equal(nr, x.nr);
	for (size_t i = 0; i < nr; i++)
		check_frame(&frames[i], event, &x, i);
}

#endif
