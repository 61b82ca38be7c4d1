/* ruby_walk.h - from frame to frame of Ruby; frames_walk.h includes it
 *
 * Each thread and each fiber has its frames (rb_control_frame_t) one behind the other, the
 * innermost first.  Lines are sent in place of offsets: the table that has them is large, and is
 * looked up here as get_insn_info() of Ruby does it.
 */
#ifndef MLEAK_BPF_RUBY_WALK_H
#define MLEAK_BPF_RUBY_WALK_H

#include "bpf/plain_text.h"

/* Words of what Ruby 3.1 has: of rb_control_frame_t, */
#define RUBY_FRAME_PC	0
#define RUBY_FRAME_ISEQ 2
#define RUBY_FRAME_EP	4
/* and of rb_iseq_constant_body; the last three are of insns_info. */
#define RUBY_BODY_CODE	1
#define RUBY_BODY_PATH	8
#define RUBY_BODY_LABEL 10
#define RUBY_BODY_LINE	11
#define RUBY_BODY_INFO	15
#define RUBY_BODY_NR	17
#define RUBY_BODY_TABLE 18

#define RUBY_FRAME_BYTES 64
#define RUBY_READ_BYTES	 40   /* of a frame that are read, */
#define RUBY_BODY_BYTES	 152  /* and of rb_iseq_constant_body, */
#define RUBY_ENTRY_BYTES 12   /* of insns_info.body: the line comes first */
#define RUBY_FINISH	 0x20 /* VM_FRAME_FLAG_FINISH: vm_exec() was called for it */
#define RUBY_OF_C	 0x80 /* VM_FRAME_FLAG_CFRAME */

/* Of the flags that an object begins with: T_STRING, T_ARRAY, and a flag of both. */
#define RUBY_TYPE	 0x1f
#define RUBY_STRING	 5
#define RUBY_ARRAY	 7
#define RUBY_IMEMO_MASK	 0xf01f /* T_IMEMO, and which kind: imemo_iseq */
#define RUBY_IMEMO_ISEQ	 0x701a
#define RUBY_USER_1	 (1u << 13) /* the string is elsewhere; the array is not */
#define RUBY_EMBED_SHIFT 14
#define RUBY_EMBED_MAX	 0x1f
#define RUBY_OBJECT	 16 /* bytes before what an object holds itself */

/* struct succ_index_table: ranks of the first positions, 9 in a word, and then blocks. */
#define RUBY_FIRST	 54
#define RUBY_IN_WORD	 9
#define RUBY_RANK_BITS	 7
#define RUBY_BLOCKS	 48 /* bytes before the first one */
#define RUBY_BLOCK_BYTES 80 /* of each: its rank, ranks of its words, */
#define RUBY_BLOCK_WORDS 16 /* and behind these its words */
#define RUBY_BLOCK_HAS	 512
#define RUBY_SMALL_BITS	 9

/* Find the string at @addr, or if that is an array, its first.  -1: there is none. */
PYTHON_INLINE int ruby_find_text(PYTHON_ARG struct python_walk *w, __u64 addr,
				 struct plain_text *text)
{
	*text = (struct plain_text){0};
	if (!python_is_address(addr) || PYTHON_READ(w->part, addr, 32))
		return -1;
	if ((w->part[0] & RUBY_TYPE) == RUBY_ARRAY) {
		addr = w->part[2];
		if (!(w->part[0] & RUBY_USER_1)) {
			if (!python_is_address(w->part[3]) ||
			    PYTHON_READ(&w->part[0], w->part[3], 8))
				return -1;
			addr = w->part[0];
		}
		if (!python_is_address(addr) || PYTHON_READ(w->part, addr, 32))
			return -1;
	}
	if ((w->part[0] & RUBY_TYPE) != RUBY_STRING)
		return -1;
	if (w->part[0] & RUBY_USER_1) {
		text->len = w->part[2];
		text->addr = w->part[3];
	} else {
		text->len = w->part[0] >> RUBY_EMBED_SHIFT & RUBY_EMBED_MAX;
		text->addr = addr + RUBY_OBJECT;
		text->has_words = 1;
	}
	return text->len > PLAIN_TEXT_MAX ? -1 : 0;
}

/* Find the texts of the function in @w->code. */
PYTHON_INLINE int ruby_find_parts(PYTHON_ARG struct python_walk *w, struct plain_code *code)
{
	code->class = (struct plain_text){0};
	code->first_line = (__u32)(w->code[RUBY_BODY_LINE] >> 1); /* a Fixnum */
	if (ruby_find_text(PYTHON_PASS w, w->code[RUBY_BODY_LABEL], &code->name))
		return -1;
	return ruby_find_text(PYTHON_PASS w, w->code[RUBY_BODY_PATH], &code->file);
}

/* Read the function (rb_iseq_t) at @code, as far as it is in its body, to @w->code.  -1: it cannot
 * be read. */
PYTHON_INLINE int ruby_read(PYTHON_ARG struct python_walk *w, __u64 code)
{
	/* one that was moved, or whose place was used again, is none */
	return !python_is_address(code) || PYTHON_READ(w->part, code, 24) ||
			       (w->part[0] & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ ||
			       PYTHON_READ(w->code, w->part[2], RUBY_BODY_BYTES)
		       ? -1
		       : 0;
}

/* The same, and its digest into *@digest: of label, path, line, and where its instructions are. */
PYTHON_INLINE int ruby_digest(PYTHON_ARG struct python_walk *w, __u64 code, __u32 *digest)
{
	struct plain_text name, file;
	__u64 sum;

	if (ruby_read(PYTHON_PASS w, code) ||
	    ruby_find_text(PYTHON_PASS w, w->code[RUBY_BODY_LABEL], &name) ||
	    ruby_find_text(PYTHON_PASS w, w->code[RUBY_BODY_PATH], &file))
		return -1;
	sum = plain_mix(PYTHON_PASS w, &name, &file);
	sum = python_mix(sum, w->code[RUBY_BODY_LINE]);
	sum = python_mix(sum, w->code[RUBY_BODY_CODE]);
	*digest = (__u32)(sum >> 32);
	return 0;
}

/* How many bits of @word are set.  (BPF has no instruction for it, nor has each processor.) */
PYTHON_INLINE __u32 ruby_count_bits(__u64 word)
{
	word -= word >> 1 & 0x5555555555555555ull;
	word = (word & 0x3333333333333333ull) + (word >> 2 & 0x3333333333333333ull);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (__u32)(word * 0x0101010101010101ull >> 56);
}

/* How many entries of the table at @table are for positions up to @at.  0: it cannot be read. */
PYTHON_INLINE __u32 ruby_rank(PYTHON_ARG struct python_walk *w, __u64 table, __u32 at)
{
	__u32 nr, word;

	if (at < RUBY_FIRST) {
		if (PYTHON_READ(&w->part[0], table + at / RUBY_IN_WORD * 8, 8))
			return 0;
		return (__u32)(w->part[0] >> at % RUBY_IN_WORD * RUBY_RANK_BITS) &
		       ((1u << RUBY_RANK_BITS) - 1);
	}
	at -= RUBY_FIRST;
	table += RUBY_BLOCKS + (__u64)(at / RUBY_BLOCK_HAS) * RUBY_BLOCK_BYTES;
	at %= RUBY_BLOCK_HAS;
	word = at / 64;
	if (PYTHON_READ(w->part, table, 16) ||
	    PYTHON_READ(&w->part[2], table + RUBY_BLOCK_WORDS + word * 8, 8))
		return 0;
	nr = (__u32)w->part[0];
	if (word)
		nr += (__u32)(w->part[1] >> (word - 1) * RUBY_SMALL_BITS) &
		      ((1u << RUBY_SMALL_BITS) - 1);
	return nr + ruby_count_bits(w->part[2] << (63 - at % 64));
}

/* The line of the function in @w->code at @pc, as event_frame.at.  0: it is not known. */
PYTHON_INLINE __u32 ruby_at(PYTHON_ARG struct python_walk *w, __u64 pc)
{
	__u64 at = (pc - w->code[RUBY_BODY_CODE]) / 8;
	__u32 nr = (__u32)w->code[RUBY_BODY_NR], rank = 1;

	if (at >= 1u << 24 || !nr)
		return 0;
	if (nr > 1)
		rank = ruby_rank(PYTHON_PASS w, w->code[RUBY_BODY_TABLE], (__u32)(at ? at - 1 : 0));
	if (!rank || rank > nr ||
	    PYTHON_READ(&w->part[0], w->code[RUBY_BODY_INFO] + (__u64)(rank - 1) * RUBY_ENTRY_BYTES,
			4))
		return 0;
	return (__u32)w->part[0] < (1u << 28) - 2 ? (__u32)w->part[0] + 2 : 0;
}

/* Fill *@to from the frame at @w->frame, and go on to its caller.  1: that was one of C, and *@to
 * is nothing.  -1: it cannot be read. */
PYTHON_INLINE int ruby_step(PYTHON_ARG struct python_walk *w, struct event_frame *to)
{
	__u64 flags, code;

	if (PYTHON_READ(w->words, w->frame, RUBY_READ_BYTES))
		return -1;
	w->frame += RUBY_FRAME_BYTES;
	if (w->frame >= w->outer)
		w->frame = 0;
	code = w->words[RUBY_FRAME_ISEQ];
	if (!code || !w->words[RUBY_FRAME_PC])
		return 1;
	if (!python_is_address(w->words[RUBY_FRAME_EP]) ||
	    PYTHON_READ(&w->part[0], w->words[RUBY_FRAME_EP], 8))
		return -1;
	flags = w->part[0];
	if (flags & RUBY_OF_C)
		return 1;
	if (ruby_digest(PYTHON_PASS w, code, &to->digest))
		return -1;
	to->at = ruby_at(PYTHON_PASS w, w->words[RUBY_FRAME_PC]);
	to->code = code;
	if (flags & RUBY_FINISH)
		to->code |= EVENT_FRAME_ENTRY;
	return 0;
}

/* Begin at the innermost frame of the thread whose rb_execution_context_t is at @state.  -1: it
 * executes none. */
PYTHON_INLINE int ruby_begin(PYTHON_ARG struct python_walk *w, __u64 state)
{
	/* its stack, how many words that has, and the frame */
	if (!python_is_address(state) || PYTHON_READ(w->part, state, 24) || w->part[1] > 1u << 24)
		return -1;
	/* the last one is none, and only looks like one of the program (Init_VM()) */
	w->outer = w->part[0] + w->part[1] * 8 - RUBY_FRAME_BYTES;
	w->frame = w->part[2];
	return python_is_address(w->frame) && w->frame >= w->part[0] && w->frame < w->outer ? 0
											    : -1;
}

#endif
