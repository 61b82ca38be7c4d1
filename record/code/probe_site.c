/* probe_site.c - exact byte patterns, and a search for jumps that would break their promise */
#include "record/code/probe_site.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define LONGEST 15  /* bytes of an instruction */
#define BEFORE	256 /* bytes from which on those before a jump are told apart */
#define DOUBTS	256 /* seeming jumps that are looked at so; libraries have a few */

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

/* Registers by their number in an instruction's encoding, as bits. */
#define RAX (1u << 0)
#define RDX (1u << 2)
#define RSP (1u << 4)

/* The argument registers, in their order: rdi rsi rdx rcx r8 r9. */
static unsigned int arguments(unsigned int nr)
{
	static const uint8_t order[] = {7, 6, 2, 1, 8, 9};
	unsigned int set = 0;

	for (unsigned int i = 0; i < nr && i < sizeof(order); i++)
		set |= 1u << order[i];
	return set;
}

/* An instruction's operands, as its ModRM byte tells them. */
struct operands {
	unsigned int reg, rm; /* registers; rm only if it is none of memory */
	unsigned int op;      /* the reg field without REX.R: part of some opcodes */
	bool memory;
	size_t len; /* bytes of ModRM, SIB and displacement */
};

static bool read_operands(const uint8_t *p, size_t len, uint8_t rex, struct operands *o)
{
	unsigned int mod, rm;

	if (!len)
		return false;
	mod = p[0] >> 6;
	rm = p[0] & 7;
	o->op = p[0] >> 3 & 7;
	o->reg = o->op | (rex & 4u) << 1;
	o->rm = rm | (rex & 1u) << 3;
	o->memory = mod != 3;
	o->len = 1;
	if (o->memory && rm == 4) { /* SIB */
		if (len < 2)
			return false;
		o->len = 2;
		if (mod == 0 && (p[1] & 7) == 5)
			o->len += 4;
	}
	if (mod == 1)
		o->len += 1;
	else if (mod == 2 || (mod == 0 && rm == 5))
		o->len += 4;
	return o->len <= len;
}

/* What an instruction of one opcode byte writes, and how many bytes follow its operands. */
struct effect {
	bool known, writes_reg, writes_rm;
	unsigned int writes; /* others */
	size_t immediate;
};

static struct effect effect_of(uint8_t opcode, const struct operands *o)
{
	/* add, or, and, sub, xor, mov: r to r/m; the same of r/m to r, and lea; cmp and test, which
	 * write nothing */
	static const uint8_t to_rm[] = {0x01, 0x09, 0x21, 0x29, 0x31, 0x89},
			     to_reg[] = {0x03, 0x0b, 0x23, 0x2b, 0x33, 0x8b, 0x8d},
			     to_none[] = {0x38, 0x39, 0x3a, 0x3b, 0x84, 0x85};
	bool writes_rm = memchr(to_rm, opcode, sizeof(to_rm));
	bool writes_reg = memchr(to_reg, opcode, sizeof(to_reg));

	if (writes_rm || writes_reg || memchr(to_none, opcode, sizeof(to_none)))
		return (struct effect){
			.known = true, .writes_rm = writes_rm, .writes_reg = writes_reg};
	switch (opcode) {
	case 0x80: /* cmpb $imm8: /7 */
		return (struct effect){.known = o->op == 7, .immediate = 1};
	case 0x81: /* add, or, and, sub, xor, cmp $imm32; adc and sbb are 2 and 3 */
	case 0x83:
		return (struct effect){.known = o->op != 2 && o->op != 3,
				       .writes_rm = o->op != 7,
				       .immediate = opcode == 0x81 ? 4 : 1};
	case 0xc1: /* shl, shr, sar $imm8 */
		return (struct effect){.known = o->op == 4 || o->op == 5 || o->op == 7,
				       .writes_rm = true,
				       .immediate = 1};
	case 0xf6: /* test $imm8 */
		return (struct effect){.known = o->op == 0, .immediate = 1};
	case 0xf7: /* test $imm32; mul */
		return (struct effect){.known = o->op == 0 || o->op == 4,
				       .writes = o->op == 4 ? RAX | RDX : 0,
				       .immediate = o->op == 0 ? 4 : 0};
	default:
		return (struct effect){.known = false};
	}
}

/* Length of the instruction at @p if it may be stepped over: it is known to the last byte, writes
 * no memory and none of the registers @kept.  Else 0. */
static size_t harmless_len(const uint8_t *p, size_t len, unsigned int kept)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct operands o;
	struct effect e;
	size_t at = 0;
	uint8_t rex = 0;

	if (len >= 4 && !memcmp(p, endbr64, 4))
		return 4;
	if (at < len && p[at] == 0x64) /* %fs: */
		at++;
	if (at < len && p[at] >= 0x40 && p[at] <= 0x4f)
		rex = p[at++];
	if (at >= len)
		return 0;
	/* mov $imm32 to a 32-bit register */
	if (p[at] >= 0xb8 && p[at] <= 0xbf && !(rex & 8))
		return kept & 1u << ((p[at] & 7u) | (rex & 1u) << 3) || len - at < 5 ? 0 : at + 5;
	/* add, or, and, sub, xor, cmp, test $imm32 to eax or rax, which holds no argument */
	if (p[at] && strchr("\x05\x0d\x25\x2d\x35\x3d\xa9", (char)p[at]))
		return len - at < 5 ? 0 : at + 5;
	if (!read_operands(p + at + 1, len - at - 1, rex, &o))
		return 0;
	e = effect_of(p[at], &o);
	if (!e.known || kept & e.writes || (e.writes_reg && kept & 1u << o.reg) ||
	    (e.writes_rm && (o.memory || kept & 1u << o.rm)))
		return 0;
	at += 1 + o.len + e.immediate;
	return at <= len ? at : 0;
}

struct probe_site probe_site_find(const uint8_t *code, size_t len, unsigned int nr_args)
{
	const unsigned int kept = RSP | arguments(nr_args);
	struct probe_site site = {0};
	size_t at = 0, step;

	do {
		if (is_emulated(code + at, len - at)) {
			site.offset = at;
			site.emulated = true;
			return site;
		}
		step = harmless_len(code + at, len - at, kept);
		at += step;
	} while (step);
	return site;
}

static int32_t rel32(const uint8_t *p)
{
	return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			 (uint32_t)p[3] << 24);
}

/* Where the bytes at @at lead if they are a jump or call with its target in them; -1: they are not.
 */
static int64_t jump_target(const uint8_t *text, size_t text_len, size_t at)
{
	const uint8_t *p = text + at;
	size_t left = text_len - at;

	if (((p[0] >= 0x70 && p[0] <= 0x7f) || (p[0] >= 0xe0 && p[0] <= 0xe3) || p[0] == 0xeb) &&
	    left >= 2)
		return (int64_t)at + 2 + (int8_t)p[1];
	if ((p[0] == 0xe8 || p[0] == 0xe9) && left >= 5)
		return (int64_t)at + 5 + rel32(p + 1);
	if (p[0] == 0x0f && left >= 6 && p[1] >= 0x80 && p[1] <= 0x8f)
		return (int64_t)at + 6 + rel32(p + 2);
	return -1;
}

/* Are the @len bytes at @p prefixes of an instruction? */
static bool are_prefixes(const uint8_t *p, size_t len)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64,
					   0x65, 0x66, 0x67, 0xf2, 0xf3};

	for (size_t i = 0; i < len; i++)
		if ((p[i] & 0xf0) != 0x40 && !memchr(prefixes, p[i], sizeof(prefixes)))
			return false;
	return true;
}

/* Does an instruction begin at @at, or the opcode of one, if one begins at @from? */
static bool leads_to(const ZydisDecoder *decoder, const uint8_t *text, size_t text_len, size_t from,
		     size_t at)
{
	while (from < at) {
		ZydisDecodedInstruction insn;

		if (are_prefixes(text + from, at - from))
			return true;
		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, text + from,
							       text_len - from, &insn)))
			from += insn.length;
		else
			from++;
	}
	return from == at;
}

/*
 * May an instruction begin at @at?  Of as many bytes as the longest one has, one begins some
 * instruction.  So one of the ways from there to @at is that of the code; the others mostly join it
 * after a few instructions.
 */
static bool may_begin(const uint8_t *text, size_t text_len, size_t at)
{
	size_t from = at > BEFORE ? at - BEFORE : 0;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < LONGEST && from + i <= at; i++)
		if (leads_to(&decoder, text, text_len, from + i, at))
			return true;
	return false;
}

void probe_site_jumps(const uint8_t *text, size_t text_len, const size_t *sites, size_t nr,
		      bool *hit)
{
	size_t lo = SIZE_MAX, hi = 0, doubts = 0;

	for (size_t i = 0; i < nr; i++) {
		hit[i] = false;
		lo = sites[i] < lo ? sites[i] : lo;
		hi = sites[i] > hi ? sites[i] : hi;
	}
	/* From every byte: much of a file may be data or of no known function. */
	for (size_t at = 0; nr && at < text_len; at++) {
		int64_t target = jump_target(text, text_len, at);

		if (target < (int64_t)lo || target > (int64_t)hi)
			continue;
		for (size_t i = 0; i < nr; i++)
			if (target == (int64_t)sites[i] && !hit[i])
				hit[i] = ++doubts > DOUBTS || may_begin(text, text_len, at);
	}
}
