/* probe_site.c - exact byte patterns, and a search for jumps that would break their promise */
#include "record/probe_site.h"

#include <string.h>

/* Does the kernel emulate the instruction at @p?  arch/x86/kernel/uprobes.c: branch_setup_xol_ops()
 * and push_setup_xol_ops(); what only later kernels emulate is left out. */
static bool is_emulated(const uint8_t *p, size_t len)
{
	if (len >= 1 && ((p[0] >= 0x50 && p[0] <= 0x57) || /* push r64 */
			 (p[0] >= 0x70 && p[0] <= 0x7f) || /* jcc rel8 */
			 p[0] == 0x90 ||		   /* nop */
			 p[0] == 0xe8 || p[0] == 0xe9 ||   /* call, jmp rel32 */
			 p[0] == 0xeb))			   /* jmp rel8 */
		return true;
	return len >= 2 && ((p[0] == 0x41 && p[1] >= 0x50 && p[1] <= 0x57) || /* push r8-r15 */
			    (p[0] == 0x0f && p[1] >= 0x80 && p[1] <= 0x8f));  /* jcc rel32 */
}

/* Length of the instruction at @p if it is one of those that may be stepped over; else 0. */
static size_t harmless_len(const uint8_t *p, size_t len)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (len >= 4 && !memcmp(p, endbr64, 4))
		return 4;
	/* test r64,r64 of one register with itself: 48 85 /r, 4d 85 /r */
	if (len >= 3 && (p[0] == 0x48 || p[0] == 0x4d) && p[1] == 0x85 && p[2] >= 0xc0 &&
	    (p[2] >> 3 & 7) == (p[2] & 7))
		return 3;
	/* cmpb $imm8,disp32(%rip): 80 3d disp32 imm8 */
	if (len >= 7 && p[0] == 0x80 && p[1] == 0x3d)
		return 7;
	return 0;
}

static int32_t rel32(const uint8_t *p)
{
	return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			 (uint32_t)p[3] << 24);
}

/* Could the bytes at @at be a jump or call to @target?  Looked at from every byte, for without a
 * disassembler any may begin an instruction: this errs on the side of "yes". */
static bool may_jump_to(const uint8_t *text, size_t text_len, size_t at, size_t target)
{
	const uint8_t *p = text + at;
	size_t left = text_len - at;
	int64_t distance = (int64_t)target - (int64_t)at;

	if (left >= 2 &&
	    ((p[0] >= 0x70 && p[0] <= 0x7f) || (p[0] >= 0xe0 && p[0] <= 0xe3) || p[0] == 0xeb))
		if (2 + (int8_t)p[1] == distance)
			return true;
	if (left >= 5 && (p[0] == 0xe8 || p[0] == 0xe9) && 5 + (int64_t)rel32(p + 1) == distance)
		return true;
	return left >= 6 && p[0] == 0x0f && p[1] >= 0x80 && p[1] <= 0x8f &&
	       6 + (int64_t)rel32(p + 2) == distance;
}

static bool is_jump_target(const uint8_t *text, size_t text_len, size_t target)
{
	for (size_t at = 0; at < text_len; at++)
		if (may_jump_to(text, text_len, at, target))
			return true;
	return false;
}

struct probe_site probe_site_find(const uint8_t *text, size_t text_len, size_t func,
				  size_t func_len)
{
	struct probe_site at_start = {0};
	size_t at = 0, step;

	if (func >= text_len || func_len > text_len - func)
		return at_start;
	at_start.emulated = is_emulated(text + func, func_len);
	if (at_start.emulated)
		return at_start;
	while ((step = harmless_len(text + func + at, func_len - at)) != 0) {
		at += step;
		if (is_emulated(text + func + at, func_len - at)) {
			struct probe_site site = {.offset = at, .emulated = true};

			return is_jump_target(text, text_len, func + at) ? at_start : site;
		}
	}
	return at_start;
}
