/* python_walk.h - from frame to frame of CPython, for probes, library and recorder alike
 *
 * Whoever includes it says before how memory is read: PYTHON_READ(to, addr, bytes), 0 on success;
 * the number of bytes is a constant.  PYTHON_ARG, if defined, is a parameter more, for that.
 */
#ifndef MLEAK_BPF_PYTHON_WALK_H
#define MLEAK_BPF_PYTHON_WALK_H

#include "bpf/python.h"

#ifndef PYTHON_ARG
#define PYTHON_ARG
#define PYTHON_PASS
#endif

#ifndef PYTHON_INLINE
#define PYTHON_INLINE static inline __attribute__((always_inline))
#endif

/* A digest of the string at @addr into *@sum: how long it is, and its last characters.  (Its hash
 * is not always known yet.) */
PYTHON_INLINE int python_mix_text(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				  __u64 addr, __u64 *sum)
{
	__u64 len, from;

	if (!python_is_address(addr) || PYTHON_READ(&w->part[0], addr + 16, 24))
		return -1;
	len = w->part[0];
	/* the characters of others are not behind the head */
	if (len > 65536 || !(w->part[2] & PYTHON_COMPACT))
		return -1;
	from = len > 8 ? len - 8 : 0;
	/* of a short one, what is behind it belongs to the same block */
	if (PYTHON_READ(&w->part[3], addr + py->text + from, 8))
		return -1;
	if (len < 8)
		w->part[3] &= (1ull << len * 8) - 1;
	*sum = python_mix(python_mix(addr, len), w->part[3]);
	return 0;
}

/* The same of the file name @file, which callers often have in common. */
PYTHON_INLINE int python_mix_file(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				  __u64 file)
{
	__u64 sum;

	if (file == w->file)
		return 0;
	if (python_mix_text(PYTHON_PASS w, py, file, &sum))
		return -1;
	w->file = file;
	w->file_mix = sum;
	return 0;
}

/*
 * The digest of the code object at @code into *@digest.  It is of what is never changed: name,
 * file, first line, the sizes of code and lines, and where all these are.  -1: it cannot be read,
 * or is none.
 */
PYTHON_INLINE int python_digest(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				__u64 code, __u32 *digest)
{
	__u64 lines, sum;

	if (!python_is_address(code) || PYTHON_READ(w->code, code, PYTHON_CODE_BYTES) ||
	    w->code[1] != py->code_type)
		return -1;
	lines = w->code[py->code_lines & PYTHON_WORD_MAX];
	if (python_mix_file(PYTHON_PASS w, py, w->code[py->code_file & PYTHON_WORD_MAX]) ||
	    python_mix_text(PYTHON_PASS w, py, w->code[py->code_name & PYTHON_WORD_MAX], &sum) ||
	    !python_is_address(lines) || PYTHON_READ(&w->part[1], lines + 16, 24))
		return -1;
	sum = python_mix(sum, w->file_mix);
	sum = python_mix(sum, w->code[2]);
	sum = python_mix(sum, w->code[py->code_line & PYTHON_WORD_MAX]);
	sum = python_mix(sum, lines);
	sum = python_mix(sum, w->part[1]);
	sum = python_mix(sum, w->part[3]);
	*digest = (__u32)(sum >> 32);
	return 0;
}

/* Fill *@to from the frame at @w->frame, and go on to its caller.  -1: it cannot be read. */
PYTHON_INLINE int python_step(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			      struct event_frame *to)
{
	__u64 code, at;

	if (!python_is_address(w->frame) || PYTHON_READ(w->words, w->frame, PYTHON_FRAME_BYTES))
		return -1;
	code = w->words[py->frame_code & 15];
	at = w->words[py->frame_instr & 15] - code - py->code_start + 2;
	if (at >= 1u << 28 || python_digest(PYTHON_PASS w, py, code, &to->digest))
		return -1;
	to->at = (__u32)at;
	to->code = code;
	if (w->words[py->frame_kind & 15] >> (py->kind_shift & 63) & 0xff)
		to->code |= EVENT_FRAME_ENTRY;
	w->frame = w->words[py->frame_previous & 15];
	return 0;
}

/* Find the innermost frame of the thread whose control block is at @thread.  -1: it does not
 * interpret now. */
PYTHON_INLINE int python_begin(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			       __u64 thread)
{
	__u64 state;

	w->file = 0;
	if (PYTHON_READ(&w->part[0], py->current, 8))
		return -1;
	state = w->part[0];
	/* It holds the lock of the interpreter: no other thread changes the frames meanwhile. */
	if (!python_is_address(state) || PYTHON_READ(&w->part[0], state + py->state_thread, 8) ||
	    w->part[0] != thread || PYTHON_READ(&w->part[1], state + py->state_frame, 8) ||
	    !python_is_address(w->part[1]) ||
	    PYTHON_READ(&w->part[0], w->part[1] + py->cframe_frame, 8))
		return -1;
	w->frame = w->part[0];
	return w->frame ? 0 : -1;
}

#endif
