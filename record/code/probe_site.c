/* probe_site.c - exact byte patterns, and a search for jumps that would break their promise */
#include "record/code/probe_site.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define LONGEST	 15  /* bytes of an instruction */
#define FARTHEST 256 /* bytes from a function's start to its probe; allocators have 56 at most */
#define BEFORE	 256 /* bytes from which on those before a jump are told apart */
#define DOUBTS	 256 /* seeming jumps that are looked at so; libraries have a few */

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

/* Where an argument may be moved to, and be looked for: what a caller does not expect to be kept.
 * (To use another register, a function has to push it before, and there a probe can be.) */
#define SCRATCH 0x0fc7u /* rax rcx rdx rsi rdi r8 r9 r10 r11 */

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

/* An instruction that may be stepped over. */
struct step {
	size_t len;	     /* bytes; 0: it may not */
	unsigned int writes; /* registers, as bits */
	unsigned int from;   /* the one that is copied to these as a whole; 0: none is */
};

/* What of an instruction is before its opcode. */
struct prefixes {
	size_t len;
	uint8_t rex;
};

static struct prefixes read_prefixes(const uint8_t *p, size_t len)
{
	struct prefixes f = {0};

	if (f.len < len && p[f.len] == 0x64) /* %fs: */
		f.len++;
	if (f.len < len && p[f.len] >= 0x40 && p[f.len] <= 0x4f)
		f.rex = p[f.len++];
	return f;
}

/* One without operands in a ModRM byte: its opcode is at @p, behind @f. */
static struct step short_step(const uint8_t *p, size_t len, const struct prefixes *f)
{
	struct step s = {0};

	if (len < 5)
		return s;
	/* mov $imm32 to a 32-bit register */
	if (p[0] >= 0xb8 && p[0] <= 0xbf && !(f->rex & 8))
		s = (struct step){f->len + 5, 1u << ((p[0] & 7u) | (f->rex & 1u) << 3), 0};
	/* add, or, and, sub, xor, cmp, test $imm32 to eax or rax: the last two write nothing */
	else if (p[0] && strchr("\x05\x0d\x25\x2d\x35\x3d\xa9", (char)p[0]))
		s = (struct step){f->len + 5, p[0] == 0x3d || p[0] == 0xa9 ? 0 : RAX, 0};
	return s;
}

/* The instruction at @p, if it is known to the last byte and writes no memory. */
static struct step step_at(const uint8_t *p, size_t len)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const struct prefixes f = read_prefixes(p, len);
	struct operands o;
	struct effect e;
	struct step s;

	if (len >= 4 && !memcmp(p, endbr64, 4))
		return (struct step){4, 0, 0};
	p += f.len;
	len -= f.len;
	if (!len)
		return (struct step){0};
	s = short_step(p, len, &f);
	if (s.len || !read_operands(p + 1, len - 1, f.rex, &o))
		return s;
	e = effect_of(p[0], &o);
	if (!e.known || (e.writes_rm && o.memory) || 1 + o.len + e.immediate > len)
		return s;
	s.len = f.len + 1 + o.len + e.immediate;
	s.writes = e.writes | (e.writes_reg ? 1u << o.reg : 0) | (e.writes_rm ? 1u << o.rm : 0);
	if ((f.rex & 8) && !o.memory && (p[0] == 0x89 || p[0] == 0x8b)) /* mov r64, r64 */
		s.from = 1u << (p[0] == 0x89 ? o.reg : o.rm);
	return s;
}

/* The argument registers, in their order: rdi rsi rdx rcx r8 r9. */
static const uint8_t passed_in[PROBE_SITE_ARGS] = {7, 6, 2, 1, 8, 9};

/* Which registers have which argument, as bits. */
struct places {
	unsigned int of[PROBE_SITE_ARGS], nr;
	bool in_place; /* only those that they were passed in count */
};

/* What @s does to them.  False: an argument is lost. */
static bool places_after(struct places *at, const struct step *s)
{
	for (unsigned int i = 0; i < at->nr; i++) {
		bool copied = at->of[i] & s->from && !at->in_place;

		at->of[i] &= ~s->writes;
		if (copied)
			at->of[i] |= s->writes & SCRATCH;
		if (!at->of[i])
			return false;
	}
	return true;
}

/* Tell in @site where the arguments are: where they were passed in, if they are there still. */
static void tell_places(struct probe_site *site, const struct places *at)
{
	memcpy(site->args, passed_in, sizeof(site->args));
	for (unsigned int i = 0; i < at->nr; i++)
		if (!(at->of[i] & 1u << passed_in[i]))
			site->args[i] = (uint8_t)__builtin_ctz(at->of[i]);
}

struct probe_site probe_site_find(const uint8_t *code, size_t len, unsigned int nr_args,
				  bool in_place)
{
	struct places where = {.nr = nr_args < PROBE_SITE_ARGS ? nr_args : PROBE_SITE_ARGS,
			       .in_place = in_place};
	struct probe_site site = {0};
	struct step step;

	for (unsigned int i = 0; i < where.nr; i++)
		where.of[i] = 1u << passed_in[i];
	tell_places(&site, &where);
	for (size_t at = 0; at <= FARTHEST; at += step.len) {
		if (is_emulated(code + at, len - at)) {
			site.offset = at;
			site.emulated = true;
			tell_places(&site, &where);
			return site;
		}
		step = step_at(code + at, len - at);
		if (!step.len || step.writes & RSP || !places_after(&where, &step))
			break;
	}
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

void probe_site_jumps(const uint8_t *text, size_t text_len, const struct probe_span *spans,
		      size_t nr, bool *hit)
{
	size_t lo = SIZE_MAX, hi = 0, doubts = 0;

	for (size_t i = 0; i < nr; i++) {
		hit[i] = false;
		lo = spans[i].first < lo ? spans[i].first : lo;
		hi = spans[i].last > hi ? spans[i].last : hi;
	}
	/* From every byte: much of a file may be data or of no known function. */
	for (size_t at = 0; nr && at < text_len; at++) {
		int64_t target = jump_target(text, text_len, at);

		if (target < (int64_t)lo || target > (int64_t)hi)
			continue;
		for (size_t i = 0; i < nr; i++)
			if (target >= (int64_t)spans[i].first && target <= (int64_t)spans[i].last &&
			    !hit[i])
				hit[i] = ++doubts > DOUBTS || may_begin(text, text_len, at);
	}
}
