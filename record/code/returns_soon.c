/* returns_soon.c - see returns_soon.h */
#include "record/code/returns_soon.h"

#include <Zydis/Zydis.h>

#define MOST_STEPS 128 /* instructions between the jumps and one `ret` */

#define RAX 0

/* As bits, by their numbers in an instruction: what the BPF programs can read, and what a function
 * has to leave as it was. */
#define SCRATCH	     0x0fc7u /* rax rcx rdx rsi rdi r8 r9 r10 r11 */
#define CALLEE_SAVED 0xf038u /* rbx rsp rbp r12 r13 r14 r15 */

/* When the instruction is about to run, the function's result is in this register. */
struct moment {
	size_t insn;
	uint8_t reg;
};

struct search {
	const struct reached_code *r;
	ZydisDecoder decoder;
	struct moment v[MOST_STEPS];
	size_t nr;
	struct returns_site *out;
	size_t nr_out, most;
};

static const uint8_t *bytes_of(const struct search *s, size_t insn)
{
	return s->r->code->text + (s->r->v[insn].at - s->r->code->start);
}

/* The condition on which the jump @insn jumps.  False: it is none that the kernel emulates. */
static bool read_condition(const struct search *s, size_t insn, uint8_t *when)
{
	const uint8_t *p = bytes_of(s, insn);
	uint8_t len = s->r->v[insn].len;

	if (len >= 2 && (p[0] == 0xe9 || p[0] == 0xeb)) /* jmp rel32, rel8 */
		*when = RETURNS_ALWAYS;
	else if (len == 2 && p[0] >= 0x70 && p[0] <= 0x7f) /* jcc rel8 */
		*when = p[0] & 0xf;
	else if (len == 6 && p[0] == 0x0f && p[1] >= 0x80 && p[1] <= 0x8f) /* jcc rel32 */
		*when = p[1] & 0xf;
	else
		return false;
	return true;
}

static bool add_moment(struct search *s, size_t insn, uint8_t reg)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->v[i].insn == insn)
			return s->v[i].reg == reg;
	if (s->nr == MOST_STEPS)
		return false;
	s->v[s->nr++] = (struct moment){insn, reg};
	return true;
}

static bool add_site(struct search *s, size_t insn, uint8_t reg, uint8_t when)
{
	const struct returns_site site = {s->r->v[insn].at, RETURNS_SOON, reg, when};

	for (size_t i = 0; i < s->nr_out; i++)
		if (s->out[i].at == site.at)
			return false; /* it leads there either way, and one probe tells one */
	if (s->nr_out == s->most || !(SCRATCH & 1u << reg))
		return false;
	s->out[s->nr_out++] = site;
	return true;
}

/* The registers that an instruction writes, as bits. */
static unsigned int written(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
	unsigned int set = 0;

	for (uint8_t i = 0; i < insn->operand_count; i++) {
		ZydisRegister reg;

		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						       ops[i].reg.value);
		if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR64)
			set |= 1u << ZydisRegisterGetId(reg);
	}
	return set;
}

/* Does @insn copy a register of 64 bits as a whole?  *@from is its number. */
static bool is_copy(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops,
		    uint8_t *from)
{
	if (insn->mnemonic != ZYDIS_MNEMONIC_MOV || insn->operand_width != 64 ||
	    ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ZydisRegisterGetClass(ops[0].reg.value) != ZYDIS_REGCLASS_GPR64 ||
	    ZydisRegisterGetClass(ops[1].reg.value) != ZYDIS_REGCLASS_GPR64)
		return false;
	*from = (uint8_t)ZydisRegisterGetId(ops[1].reg.value);
	return true;
}

/* Behind the instruction @insn, which is no jump, the result is in @reg: where is it before? */
static bool go_back_over(struct search *s, size_t insn, uint8_t reg)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	unsigned int writes;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&s->decoder, bytes_of(s, insn), s->r->v[insn].len,
						 &decoded, ops)))
		return false;
	switch (decoded.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_COND_BR:  /* loop, jrcxz, xbegin */
	case ZYDIS_CATEGORY_STRINGOP: /* of cmps and scas it is not told that they write rsi, rdi */
	case ZYDIS_CATEGORY_IOSTRINGOP:
		return false;
	default:
		break;
	}
	writes = written(&decoded, ops);
	if (writes & CALLEE_SAVED)
		return false;
	if (writes & 1u << reg && !is_copy(&decoded, ops, &reg))
		return false;
	return add_moment(s, insn, reg);
}

/* Control comes to @m from the instruction before it. */
static bool go_back(struct search *s, const struct moment *m)
{
	size_t before = m->insn - 1;
	uint8_t when;

	if (!s->r->v[before].to)
		return go_back_over(s, before, m->reg);
	/* The opposite condition has the number beside. */
	return read_condition(s, before, &when) && when != RETURNS_ALWAYS &&
	       add_site(s, before, m->reg, when ^ 1);
}

static bool falls_through(const struct reached *before, const struct reached *insn)
{
	return before->at + before->len == insn->at && !before->ends && before->how == GOES_ON;
}

/* The first jump that leads to @to or to what is behind. */
static size_t first_jump(const struct reached_code *r, uint64_t to)
{
	size_t lo = 0, hi = r->nr_jumps;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (r->v[r->jumps[mid]].to < to)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Is a probe for something else at @at?  Then another function begins there, and its call would be
 * noted when the one that ends by it is over already. */
static bool is_probed(const struct returns_code *code, uint64_t at)
{
	for (size_t i = 0; i < code->nr_probed; i++)
		if (code->probed[i] == at)
			return true;
	return false;
}

/* Find from where control comes to @m.  False: there is a way that does not tell the result. */
static bool examine(struct search *s, struct moment m)
{
	const struct reached_code *r = s->r;
	const uint64_t at = r->v[m.insn].at;
	bool any = false;
	uint8_t when;

	if (at == r->entry || is_probed(r->code, at))
		return false;
	if (m.insn && falls_through(&r->v[m.insn - 1], &r->v[m.insn])) {
		any = true;
		if (!go_back(s, &m))
			return false;
	}
	for (size_t i = first_jump(r, at); i < r->nr_jumps && r->v[r->jumps[i]].to == at; i++) {
		any = true;
		if (!read_condition(s, r->jumps[i], &when) ||
		    !add_site(s, r->jumps[i], m.reg, when))
			return false;
	}
	return any;
}

size_t returns_soon(const struct reached_code *r, size_t ret, struct returns_site *out, size_t most)
{
	struct search s = {.r = r, .out = out, .most = most};

	ZydisDecoderInit(&s.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!add_moment(&s, ret, RAX))
		return 0;
	for (size_t i = 0; i < s.nr; i++)
		if (!examine(&s, s.v[i]))
			return 0;
	return s.nr_out;
}
