/* unwind_live.h - for the tests of unwind/: this process as a subject, and what libgcc says of it
 *
 * A snapshot holds the registers and the stack of one moment, and the answer of libgcc's own
 * unwinder at the same moment.
 */
#ifndef TESTS_UNWIND_LIVE_H
#define TESTS_UNWIND_LIVE_H

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <cmocka.h>

#include "tests/unwind_once.h"
#include "unwind/dwunw.h"

#define LIVE_MAX_MAPS	512
#define LIVE_MAX_FRAMES 512

/* This process: its executable mappings, and the files mapped. */
struct live {
	struct dwunw *dw;
	struct dwunw_mapping maps[LIVE_MAX_MAPS];
	size_t nr_maps;
	struct {
		char path[256];
		void *image;
		size_t len;
		bool mapped;
	} file[LIVE_MAX_MAPS];
	uint32_t nr_files;
	uint64_t stack_end;
};

struct snapshot {
	uint64_t regs[DWUNW_MAX_ARCH_REGS];
	uint64_t addr; /* of the stack's first byte */
	size_t len;
	uint8_t *bytes;
	uint64_t pc[LIVE_MAX_FRAMES]; /* as libgcc finds them */
	size_t nr_pc;
};

/* Store all registers as they are here; expanded inside the function that is to be frame 0. */
#define LIVE_REGISTERS(regs)                                                                     \
	__asm__ volatile("movq %%rax, 0(%0)\n\tmovq %%rdx, 8(%0)\n\tmovq %%rcx, 16(%0)\n\t"      \
			 "movq %%rbx, 24(%0)\n\tmovq %%rsi, 32(%0)\n\tmovq %%rdi, 40(%0)\n\t"    \
			 "movq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r8, 64(%0)\n\t"     \
			 "movq %%r9, 72(%0)\n\tmovq %%r10, 80(%0)\n\tmovq %%r11, 88(%0)\n\t"     \
			 "movq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\t"  \
			 "movq %%r15, 120(%0)\n\tleaq 1f(%%rip), %%rax\n1:\tmovq %%rax, 128(%0)" \
			 :                                                                       \
			 : "r"(regs)                                                             \
			 : "rax", "memory")

/* Copy the live stack, where ASan has poisoned the gaps between variables. */
__attribute__((noinline, no_sanitize("address"))) static void live_copy(uint8_t *to, uint64_t from,
									size_t len)
{
	const volatile uint8_t *bytes = (const volatile uint8_t *)(uintptr_t)from;

	for (size_t i = 0; i < len; i++)
		to[i] = bytes[i];
}

static _Unwind_Reason_Code live_collect(struct _Unwind_Context *context, void *arg)
{
	struct snapshot *s = arg;

	/* libgcc reports the end of the stack as one more frame, at 0. */
	if (!_Unwind_GetIP(context))
		return _URC_NO_REASON;
	assert_true(s->nr_pc < LIVE_MAX_FRAMES);
	s->pc[s->nr_pc++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Take a snapshot; this function is its frame 0. */
__attribute__((noinline, unused)) static void live_snapshot(const struct live *live,
							    struct snapshot *s)
{
	LIVE_REGISTERS(s->regs);
	s->nr_pc = 0;
	_Unwind_Backtrace(live_collect, s);
	s->addr = s->regs[DWUNW_X86_64_RSP];
	s->len = live->stack_end - s->addr;
	s->bytes = malloc(s->len);
	assert_non_null(s->bytes);
	live_copy(s->bytes, s->addr, s->len);
}

static inline void live_load_file(struct live *live, uint32_t nr, const struct dwunw_mapping *map)
{
	int fd = open(live->file[nr].path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0) { /* [vdso] */
		live->file[nr].image = (void *)(uintptr_t)map->start;
		live->file[nr].len = map->end - map->start;
		return;
	}
	assert_int_equal(fstat(fd, &st), 0);
	live->file[nr].len = (size_t)st.st_size;
	live->file[nr].image = mmap(NULL, live->file[nr].len, PROT_READ, MAP_PRIVATE, fd, 0);
	live->file[nr].mapped = true;
	assert_true(live->file[nr].image != MAP_FAILED);
	close(fd);
}

static inline uint32_t live_module(struct live *live, const char *path,
				   const struct dwunw_mapping *map)
{
	uint32_t nr, module;

	if (path[0] != '/' && strcmp(path, "[vdso]"))
		return DWUNW_NO_MODULE;
	for (nr = 0; nr < live->nr_files; nr++)
		if (!strcmp(live->file[nr].path, path))
			return nr;
	snprintf(live->file[nr].path, sizeof(live->file[nr].path), "%s", path);
	live_load_file(live, nr, map);
	assert_int_equal(
		dwunw_module_add(live->dw, &module, path, live->file[nr].image, live->file[nr].len),
		0);
	assert_int_equal(module, nr);
	live->nr_files++;
	return module;
}

static inline void live_parse_line(struct live *live, const char *line)
{
	struct dwunw_mapping map = {.module = DWUNW_NO_MODULE};
	char perms[5], path[256] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %255s", &map.start,
		   &map.end, perms, &map.file_offset, path) < 4)
		return;
	if (!strcmp(path, "[stack]"))
		live->stack_end = map.end;
	if (perms[2] != 'x' || !path[0])
		return;
	map.module = live_module(live, path, &map);
	assert_true(live->nr_maps < LIVE_MAX_MAPS);
	live->maps[live->nr_maps++] = map;
}

static inline struct live *live_new(void)
{
	struct live *live = calloc(1, sizeof(*live));
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(live);
	assert_non_null(maps);
	assert_int_equal(dwunw_new(&live->dw), 0);
	while (fgets(line, sizeof(line), maps))
		live_parse_line(live, line);
	fclose(maps);
	assert_true(live->stack_end);
	return live;
}

static inline void live_free(struct live *live)
{
	dwunw_free(live->dw);
	for (uint32_t i = 0; i < live->nr_files; i++)
		if (live->file[i].mapped)
			munmap(live->file[i].image, live->file[i].len);
	free(live);
}

static inline struct dwunw_stack live_stack(const struct snapshot *s)
{
	return (struct dwunw_stack){s->addr, s->bytes, s->len};
}

/* Unwind from the registers of @s over @stack, into LIVE_MAX_FRAMES frames. */
static inline int live_capture(const struct live *live, const struct snapshot *s,
			       const struct dwunw_stack *stack, struct dwunw_frame *frames,
			       enum dwunw_status *status)
{
	struct dwunw_regset rs;
	struct dwunw_space *space;
	int nr;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(dwunw_regset_prepare(&rs, s->regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	nr = unwind_once(space, PLAIN_SAMPLE(&rs, stack), frames, LIVE_MAX_FRAMES, status);
	dwunw_space_free(space);
	return nr;
}

/* Where @pc is, as a frame. */
static inline struct dwunw_frame live_frame(const struct live *live, uint64_t pc, uint32_t flags)
{
	struct dwunw_frame frames[1];
	struct dwunw_regset rs = {.reg[DWUNW_X86_64_RIP] = pc, .known = 1u << DWUNW_X86_64_RIP};
	struct dwunw_stack stack = {0};
	struct dwunw_space *space;
	enum dwunw_status status;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(unwind_once(space, PLAIN_SAMPLE(&rs, &stack), frames, 1, &status), 1);
	dwunw_space_free(space);
	frames[0].flags = flags;
	return frames[0];
}

/* What the tests of a program share: made before the first, released after the last. */
__attribute__((unused)) static struct live *live;

__attribute__((unused)) static int live_setup(void **state)
{
	(void)state;
	live = live_new();
	return 0;
}

__attribute__((unused)) static int live_teardown(void **state)
{
	(void)state;
	live_free(live);
	return 0;
}

/* Take a snapshot @depth calls of this function below; returns @depth + 1. */
__attribute__((noinline, noclone, unused)) static int live_snapshot_below(int depth,
									  struct snapshot *s)
{
	int below = 0;

	if (depth)
		below = live_snapshot_below(depth - 1, s);
	else
		live_snapshot(live, s);
	__asm__ volatile("" : : : "memory");
	return below + 1;
}

#endif
