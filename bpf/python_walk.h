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
	if (len > 65536 || !(python_text_state(py, w->part[2]) & PYTHON_COMPACT))
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

/* The byte that tells what kind of frame the one in @w->words is. */
PYTHON_INLINE __u64 python_kind(const struct python_walk *w, const struct event_python *py)
{
	return w->words[py->frame_kind & 15] >> (py->kind_shift & 63) & 0xff;
}

/* How far the frame in @w->words has come in @code, as event_frame.at. */
PYTHON_INLINE __u64 python_at(const struct python_walk *w, const struct event_python *py,
			      __u64 code)
{
	__u64 instr = w->words[py->frame_instr & 15];
	__s64 last = (__s32)instr;

	if (!py->instr_unit)
		return instr - code - py->code_start + 2;
	return last < 0 ? 0 : (__u64)last * py->instr_unit + 2;
}

/* Is the code object in @w->code the one that only checks what __init__ returned?  It has no
 * line, and tracebacks leave its frame out. */
PYTHON_INLINE int python_is_check(const struct python_walk *w, const struct event_python *py)
{
	__u64 line = w->code[py->code_line & PYTHON_WORD_MAX] >> (py->first_line & 4) * 8;

	return py->shape == PYTHON_SHIMS && !(__u32)line &&
	       w->code[py->code_file & PYTHON_WORD_MAX] == w->code[py->code_name & PYTHON_WORD_MAX];
}

/* If the next frame is a shim, go past it: the frame in *@to was the outermost of its call.  What
 * cannot be read here cannot be read as the next frame. */
PYTHON_INLINE void python_pass_shim(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				    struct event_frame *to)
{
	__u64 at = py->frame_kind == PYTHON_MORE ? py->frame_more : py->frame_kind * 8u;

	if (!w->frame) {
		to->code |= EVENT_FRAME_ENTRY;
		return;
	}
	if (!python_is_address(w->frame) || PYTHON_READ(&w->part[0], w->frame + at, 8) ||
	    (w->part[0] >> (py->kind_shift & 63) & 0xff) < PYTHON_OWNER_SHIM ||
	    PYTHON_READ(&w->part[0], w->frame + py->frame_previous * 8u, 8))
		return;
	to->code |= EVENT_FRAME_ENTRY;
	w->frame = w->part[0];
}

/* Fill *@to from the frame at @w->frame, and go on to its caller.  1: that was none that calls
 * anything, and *@to is nothing.  -1: it cannot be read. */
PYTHON_INLINE int python_step(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			      struct event_frame *to)
{
	__u64 code, at;

	if (!python_is_address(w->frame) || PYTHON_READ(w->words, w->frame, PYTHON_FRAME_BYTES) ||
	    (py->frame_more && PYTHON_READ(&w->words[PYTHON_MORE], w->frame + py->frame_more, 8)))
		return -1;
	if (py->shape == PYTHON_SHIMS && python_kind(w, py) >= PYTHON_OWNER_SHIM) {
		*to = (struct event_frame){.code = EVENT_FRAME_ENTRY};
		w->frame = w->words[py->frame_previous & 15];
		return 0;
	}
	code = w->words[py->frame_code & 15] & ~7ull; /* since 3.14 there is a tag in it */
	at = python_at(w, py, code);
	if (at >= 1u << 28 || python_digest(PYTHON_PASS w, py, code, &to->digest))
		return -1;
	w->frame = w->words[py->frame_previous & 15];
	if (python_is_check(w, py))
		return 1;
	to->at = (__u32)at;
	to->code = code;
	if (py->shape == PYTHON_SHIMS)
		python_pass_shim(PYTHON_PASS w, py, to);
	else if (py->shape == PYTHON_OBJECTS || python_kind(w, py))
		to->code |= EVENT_FRAME_ENTRY;
	return 0;
}

/* Find what __tls_get_addr() would return for the tls_index of @py, by the thread's vector of
 * blocks: that has how many it has two words before it, and two words for each.  @thread is the
 * address of the control block.  0: it has none. */
PYTHON_INLINE __u64 python_dynamic(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				   __u64 thread)
{
	__u64 module, offset, vector;

	if (PYTHON_READ(&w->part[0], py->current, 16))
		return 0;
	module = w->part[0];
	offset = w->part[1];
	if (PYTHON_READ(&w->part[0], thread + 8, 8))
		return 0;
	vector = w->part[0];
	if (!python_is_address(vector) || PYTHON_READ(&w->part[0], vector - 16, 8) || !module ||
	    module > w->part[0] || PYTHON_READ(&w->part[0], vector + module * 16, 8) ||
	    !python_is_address(w->part[0]))
		return 0;
	return w->part[0] + offset;
}

/* Where the pointer is to the state of the thread that interprets.  0: nowhere yet. */
PYTHON_INLINE __u64 python_find_current(PYTHON_ARG struct python_walk *w,
					const struct event_python *py, __u64 thread)
{
	__u64 at = py->current;

	if (py->current_kind == PYTHON_DYNAMIC)
		at = python_dynamic(PYTHON_PASS w, py, thread);
	else if (py->current_kind == PYTHON_SLOT)
		at = PYTHON_READ(&w->part[0], at, 8) || !w->part[0] ? 0 : thread + w->part[0];
	else if (py->current_kind == PYTHON_THREAD)
		at += thread;
	return at ? at + py->current_plus : 0;
}

/* Of the values that a thread keeps by keys (pthread_getspecific(3)), in glibc: nptl/descr.h. */
#define PYTHON_KEYS	 1024 /* of a process, */
#define PYTHON_BLOCK	 32   /* and of one block: for each a generation and the value */
#define PYTHON_KEY_BYTES 16

/* The state that the thread keeps whose control block is at @thread, which is its own also while
 * others interpret.  0: none, or that is not known. */
PYTHON_INLINE __u64 python_kept_state(PYTHON_ARG struct python_walk *w,
				      const struct event_python *py, __u64 thread)
{
	__u64 key;

	if (!py->specific || PYTHON_READ(&w->part[0], py->key, 8) || !(__u32)w->part[0])
		return 0;
	key = w->part[0] >> 32;
	if (key >= PYTHON_KEYS ||
	    PYTHON_READ(&w->part[0], thread + py->specific + key / PYTHON_BLOCK * 8, 8) ||
	    !python_is_address(w->part[0]) ||
	    PYTHON_READ(&w->part[1],
			w->part[0] + key % PYTHON_BLOCK * PYTHON_KEY_BYTES + PYTHON_KEY_BYTES - 8,
			8))
		return 0;
	return w->part[1];
}

/* Is @state that of the thread whose control block is at @thread? */
PYTHON_INLINE int python_is_own(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				__u64 state, __u64 thread)
{
	return python_is_address(state) && !PYTHON_READ(&w->part[0], state + py->state_thread, 8) &&
	       w->part[0] == thread;
}

/* The state of the thread that interprets, by python_find_current(); 0: of none. */
PYTHON_INLINE __u64 python_current_state(PYTHON_ARG struct python_walk *w,
					 const struct event_python *py, __u64 thread)
{
	__u64 at = python_find_current(PYTHON_PASS w, py, thread);

	return !python_is_address(at) || PYTHON_READ(&w->part[0], at, 8) ? 0 : w->part[0];
}

/* Find the innermost frame of the thread whose control block is at @thread, and whose state is
 * @state: only it changes its frames.  -1: it executes none. */
PYTHON_INLINE int python_begin(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			       __u64 state, __u64 thread)
{
	w->file = 0;
	if (!python_is_own(PYTHON_PASS w, py, state, thread) ||
	    PYTHON_READ(&w->part[0], state + py->state_frame, 8))
		return -1;
	if (py->cframe_frame != PYTHON_DIRECT &&
	    (!python_is_address(w->part[0]) ||
	     PYTHON_READ(&w->part[0], w->part[0] + py->cframe_frame, 8)))
		return -1;
	w->frame = w->part[0];
	return w->frame ? 0 : -1;
}

#endif
