/* entry.c - see entry.h */
#include "record/inject/entry.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <string.h>

#define PAGE 4096

/* What is wrong with more than one function. */
static const char not_code[] = "it contains bytes that are not an instruction";
static const char too_far[] = "it is too far from the recorder's code, or what it refers to is";
static const char too_short[] = "it is too short";

struct plan {
	const struct inject_code *code;
	struct inject_entry *out;
	uint64_t moved_at;
	size_t first;  /* the first changed byte's offset in the function */
	size_t behind; /* that of the first instruction which is not moved */
	bool ends;     /* the last moved instruction never goes on to the next one */
	ZydisDecoder decoder;
};

static bool decode(const struct plan *p, const uint8_t *bytes, size_t len,
		   ZydisDecodedInstruction *insn)
{
	return len &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&p->decoder, NULL, bytes, len, insn));
}

static bool never_goes_on(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_JMP || insn->meta.category == ZYDIS_CATEGORY_RET;
}

/* Why @insn must stay where it is; NULL: it need not. */
static const char *find_refusal(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
		return "it has a breakpoint in its first bytes";
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return "it traps in its first bytes";
	case ZYDIS_MNEMONIC_XBEGIN:
		return "it begins a transaction in its first bytes";
	case ZYDIS_MNEMONIC_ENDBR64:
		return "it has a place to jump to in its first bytes";
	default:
		break;
	}
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return "it calls a function in its first bytes";
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_INTERRUPT:
		return "it enters the kernel in its first bytes";
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		return "it needs privileges in its first bytes";
	default:
		break;
	}
	if (insn->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return "it needs privileges in its first bytes";
	if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return "it leaves its code segment in its first bytes";
	return NULL;
}

static void append(struct inject_entry *out, const void *bytes, size_t len)
{
	memcpy(out->moved + out->nr_moved, bytes, len);
	out->nr_moved += len;
}

/* Append a jump to @target with the @nr bytes @opcode. */
static const char *append_jump(const struct plan *p, const uint8_t *opcode, size_t nr,
			       uint64_t target)
{
	int64_t distance =
		(int64_t)(target - (p->moved_at + p->out->nr_moved + nr + sizeof(int32_t)));
	int32_t rel32 = (int32_t)distance;

	if (rel32 != distance)
		return too_far;
	append(p->out, opcode, nr);
	append(p->out, &rel32, sizeof(rel32));
	return NULL;
}

/* Append the jump @insn, which leads to @target, in its form of 32 bits.  The prefixes that it may
 * have, hints and bnd, do nothing in programs of today. */
static const char *move_jump(const struct plan *p, const ZydisDecodedInstruction *insn,
			     uint64_t target)
{
	const uint8_t always = 0xe9, cond[] = {0x0f, 0x80 | (insn->opcode & 0x0f)};

	/* Such a jump is of 16 bits on AMD's processors, and not on Intel's. */
	if (insn->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return "it has a jump of 16 bits in its first bytes";
	if (insn->mnemonic == ZYDIS_MNEMONIC_JMP)
		return append_jump(p, &always, 1, target);
	/* What is left are jumps by a register: loop, jrcxz. */
	if (insn->meta.category != ZYDIS_CATEGORY_COND_BR || (insn->opcode & 0xf0) == 0xe0)
		return "it has a jump in its first bytes that leads only near";
	return append_jump(p, cond, sizeof(cond), target);
}

/* Append @insn, the bytes @from, with its operand relative to rip. */
static const char *move_relative(const struct plan *p, const ZydisDecodedInstruction *insn,
				 const uint8_t *from)
{
	size_t at = p->out->nr_moved;
	int64_t distance = (int64_t)(p->code->at + (uint64_t)(from - p->code->bytes) -
				     (p->moved_at + at) + (uint64_t)insn->raw.disp.value);
	int32_t disp32 = (int32_t)distance;

	if (insn->address_width != 64)
		return "it has an address of 32 bits in its first bytes";
	if (disp32 != distance)
		return too_far;
	append(p->out, from, insn->length);
	memcpy(p->out->moved + at + insn->raw.disp.offset, &disp32, sizeof(disp32));
	return NULL;
}

static bool is_rip_relative(const ZydisDecodedInstruction *insn)
{
	return insn->attributes & ZYDIS_ATTRIB_HAS_MODRM && insn->raw.modrm.mod == 0 &&
	       insn->raw.modrm.rm == 5 && insn->raw.disp.size == 32;
}

static const char *move_instruction(const struct plan *p, const ZydisDecodedInstruction *insn)
{
	const uint8_t *from = p->code->bytes + p->behind;
	const char *why = find_refusal(insn);

	if (why)
		return why;
	if (insn->raw.imm[0].is_relative)
		return move_jump(p, insn,
				 p->code->at + p->behind + insn->length +
					 (uint64_t)insn->raw.imm[0].value.s);
	if (is_rip_relative(insn))
		return move_relative(p, insn, from);
	append(p->out, from, insn->length);
	return NULL;
}

/* Move as many instructions as the jump overwrites. */
static const char *move_instructions(struct plan *p)
{
	const struct inject_code *code = p->code;
	const uint8_t jmp = 0xe9;

	while (p->behind < p->first + INJECT_JUMP && !p->ends) {
		ZydisDecodedInstruction insn;
		const char *why;

		if (!decode(p, code->bytes + p->behind, code->len - p->behind, &insn))
			return not_code;
		why = move_instruction(p, &insn);
		if (why)
			return why;
		p->behind += insn.length;
		p->ends = never_goes_on(&insn);
	}
	p->out->covered = p->behind - p->first;
	return p->ends ? NULL : append_jump(p, &jmp, 1, code->at + p->behind);
}

/* How many bytes of padding are at the offset @at; 0: something else is there. */
static size_t padding_len(const struct plan *p, size_t at)
{
	const struct inject_code *code = p->code;
	ZydisDecodedInstruction insn;

	if (at < code->len && !code->bytes[at] && code->size && at >= code->size)
		return 1;
	if (!decode(p, code->bytes + at, code->len - at, &insn))
		return 0;
	return insn.mnemonic == ZYDIS_MNEMONIC_NOP || insn.mnemonic == ZYDIS_MNEMONIC_INT3
		       ? insn.length
		       : 0;
}

/* May all bytes be changed that the jump needs? */
static const char *check_room(const struct plan *p)
{
	const struct inject_code *code = p->code;
	size_t end = p->first + INJECT_JUMP;

	/* A writer that is killed could have written one of them only. */
	if (p->out->at % PAGE > PAGE - INJECT_JUMP)
		return "its first bytes are on two pages, which cannot be written at once";
	if ((code->next && code->next - code->at < end) || (code->size && p->behind > code->size))
		return too_short;
	/* Without a symbol behind them, nobody knows whose these bytes are. */
	if (!code->next && p->behind < end && code->size < end)
		return too_short;
	for (size_t at = p->behind, len; at < end; at += len) {
		len = padding_len(p, at);
		if (!len)
			return too_short;
	}
	return NULL;
}

/* Has somebody changed what is to be moved or changed? */
static const char *check_file(const struct plan *p)
{
	size_t end = p->first + INJECT_JUMP;

	if (p->behind > end)
		end = p->behind;
	if (p->code->file && memcmp(p->code->file, p->code->bytes, end) != 0)
		return "it differs from its file in its first bytes: a breakpoint, a uprobe or "
		       "another program's jump may be there";
	return NULL;
}

/* What is wrong with a branch @insn of the function, which leads to @target?  @inside: it is surely
 * of the function itself. */
static const char *check_branch(const struct plan *p, const ZydisDecodedInstruction *insn,
				uint64_t target, bool inside)
{
	uint64_t into = target - p->out->at; /* below the first changed byte: a huge number */

	if (into - 1 < INJECT_JUMP - 1)
		return "it jumps into its first bytes";
	/* The jump would be a call, which the function would not make.  A call of itself is one. */
	if (inside && insn->meta.category != ZYDIS_CATEGORY_CALL &&
	    (into == 0 || target == p->code->at))
		return "it jumps back to its beginning";
	return NULL;
}

/* Does the function jump into the changed bytes?  All of it is examined, by what its file has:
 * there a breakpoint hides nothing.  If its size is not known, it ends at the first jump or return
 * behind which no branch led, and what follows is maybe other functions. */
static const char *check_branches(const struct plan *p)
{
	const struct inject_code *code = p->code;
	const uint8_t *bytes = code->file ? code->file : code->bytes;
	size_t end = code->size ? code->size : code->len;
	uint64_t furthest = 0;
	bool inside = true;
	ZydisDecodedInstruction insn;

	if (end > code->len)
		return "its code cannot be read to its end";
	for (size_t at = 0; at < end; at += insn.length) {
		if (!decode(p, bytes + at, end - at, &insn))
			/* The last bytes are maybe only the beginning of an instruction. */
			return code->size || (inside && end - at >= ZYDIS_MAX_INSTRUCTION_LENGTH)
				       ? not_code
				       : NULL;
		if (insn.raw.imm[0].is_relative) {
			uint64_t to = at + insn.length + (uint64_t)insn.raw.imm[0].value.s;
			const char *why = check_branch(p, &insn, code->at + to, inside);

			if (why)
				return why;
			if (insn.meta.category != ZYDIS_CATEGORY_CALL && to < end && to > furthest)
				furthest = to;
		}
		if (!code->size && never_goes_on(&insn) && at + insn.length > furthest)
			inside = false;
	}
	return NULL;
}

/* Are there bytes anywhere that could be a jump or a call of 32 bits into the changed bytes?  Where
 * instructions begin is not known, so each byte may begin one. */
static const char *check_text(const struct plan *p)
{
	const struct inject_code *code = p->code;
	const uint8_t *text = code->text;

	for (size_t i = 1; text && i + sizeof(int32_t) <= code->text_len; i++) {
		uint64_t into = code->text_at + i + sizeof(int32_t) - p->out->at;
		int32_t rel32;

		memcpy(&rel32, text + i, sizeof(rel32));
		into += (uint64_t)rel32;
		if (into - 1 >= INJECT_JUMP - 1)
			continue;
		if ((text[i - 1] & 0xfe) == 0xe8 ||
		    (i > 1 && text[i - 2] == 0x0f && (text[i - 1] & 0xf0) == 0x80))
			return "other code jumps into its first bytes";
	}
	return NULL;
}

/* The bytes to be changed, before and after. */
static const char *write_jump(const struct plan *p, uint64_t slot)
{
	struct inject_entry *out = p->out;
	int64_t distance = (int64_t)(slot - (out->at + INJECT_JUMP));
	int32_t rel32 = (int32_t)distance;

	if (rel32 != distance)
		return too_far;
	memcpy(out->before, p->code->bytes + p->first, INJECT_JUMP);
	out->after[0] = 0xe9;
	memcpy(out->after + 1, &rel32, sizeof(rel32));
	return NULL;
}

const char *inject_entry_plan(struct inject_entry *out, const struct inject_code *code,
			      uint64_t slot, uint64_t moved_at)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct plan p = {.code = code, .out = out, .moved_at = moved_at};
	const char *why;

	memset(out, 0, sizeof(*out));
	ZydisDecoderInit(&p.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (code->len >= sizeof(endbr64) && !memcmp(code->bytes, endbr64, sizeof(endbr64)))
		p.first = p.behind = sizeof(endbr64);
	out->at = code->at + p.first;
	why = move_instructions(&p);
	if (!why)
		why = check_room(&p);
	if (!why)
		why = check_file(&p);
	if (!why)
		why = check_branches(&p);
	if (!why)
		why = check_text(&p);
	return why ? why : write_jump(&p, slot);
}
