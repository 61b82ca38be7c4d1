/* php_walk.h - from frame to frame of PHP; frames_walk.h includes it
 *
 * A frame (zend_execute_data) has its function, the instruction executed last, and its caller. That
 * has its line with it, so lines are sent in place of offsets, and no table of lines.
 */
#ifndef MLEAK_BPF_PHP_WALK_H
#define MLEAK_BPF_PHP_WALK_H

#include "bpf/plain_text.h"

/* Words of zend_execute_data and _zend_function, and bytes of zend_op and zend_string, which have
 * been there since 7.0. */
#define PHP_FRAME_OPLINE   0
#define PHP_FRAME_FUNCTION 3
#define PHP_FRAME_INFO	   5
#define PHP_FRAME_PREVIOUS 6
#define PHP_FUNCTION_CLASS 2
#define PHP_CLASS_NAME	   8  /* bytes of zend_class_entry */
#define PHP_OP_LINE	   24 /* and of an instruction, */
#define PHP_OP_BYTES	   32 /* which has so many */
#define PHP_TEXT_LENGTH	   16
#define PHP_TEXT	   24

#define PHP_FRAME_TOP	     (1u << 17) /* ZEND_CALL_TOP: execute_ex() was called for it */
#define PHP_FRAME_GENERATOR  (1u << 24) /* ZEND_CALL_GENERATOR */
#define PHP_IS_OBJECT	     8		/* the lowest byte of info: the frame has an object */
#define PHP_OBJECT_CLASS     16		/* bytes of zend_object, */
#define PHP_GENERATOR_FRAME  56		/* and of zend_generator */
#define PHP_GENERATOR_PARENT 152
#define PHP_MOST_DELEGATING  16
#define PHP_USER_FUNCTION    2
#define PHP_EVAL	     4
#define PHP_FUNCTION_BYTES   168 /* of zend_op_array that are read */
#define PHP_FRAME_BYTES	     56

/* Find the string at @addr; 0 is an empty one.  -1: it cannot be read. */
PYTHON_INLINE int php_find_text(PYTHON_ARG struct python_walk *w, __u64 addr,
				struct plain_text *text)
{
	*text = (struct plain_text){0};
	if (!addr)
		return 0;
	if (!python_is_address(addr) || PYTHON_READ(&w->part[0], addr + PHP_TEXT_LENGTH, 8) ||
	    w->part[0] > PLAIN_TEXT_MAX)
		return -1;
	text->addr = addr + PHP_TEXT;
	text->len = w->part[0];
	text->has_words = 1; /* what is behind a short one belongs to the same block */
	return 0;
}

/* Find the texts of the function in @w->code. */
PYTHON_INLINE int php_find_parts(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				 struct plain_code *code)
{
	__u64 class = w->code[PHP_FUNCTION_CLASS];

	code->first_line = (__u32)w->code[py->code_line & PYTHON_WORD_MAX];
	code->class = (struct plain_text){0};
	if (php_find_text(PYTHON_PASS w, w->code[py->code_name & PYTHON_WORD_MAX], &code->name) ||
	    php_find_text(PYTHON_PASS w, w->code[py->code_file & PYTHON_WORD_MAX], &code->file))
		return -1;
	if (!class)
		return 0;
	if (!python_is_address(class) || PYTHON_READ(&w->part[0], class + PHP_CLASS_NAME, 8))
		return -1;
	return php_find_text(PYTHON_PASS w, w->part[0], &code->class);
}

/* Read the function at @code to @w->code.  -1: it cannot be read; 1: it is one of C. */
PYTHON_INLINE int php_read(PYTHON_ARG struct python_walk *w, __u64 code)
{
	__u8 type;

	if (!python_is_address(code) || PYTHON_READ(&w->part[0], code, 8))
		return -1;
	type = (__u8)w->part[0];
	if (type != PHP_USER_FUNCTION && type != PHP_EVAL)
		return 1;
	return PYTHON_READ(w->code, code, PHP_FUNCTION_BYTES) ? -1 : 0;
}

/*
 * The same, and its digest into *@digest: of name, class, file, lines, and where its instructions
 * are.  Closures have copies of one, so several addresses.
 */
PYTHON_INLINE int php_digest(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			     __u64 code, __u32 *digest)
{
	struct plain_text name, file;
	int err = php_read(PYTHON_PASS w, code);
	__u64 sum;

	if (err)
		return err;
	if (php_find_text(PYTHON_PASS w, w->code[py->code_name & PYTHON_WORD_MAX], &name) ||
	    php_find_text(PYTHON_PASS w, w->code[py->code_file & PYTHON_WORD_MAX], &file))
		return -1;
	sum = plain_mix(PYTHON_PASS w, &name, &file);
	sum = python_mix(sum, w->code[PHP_FUNCTION_CLASS]);
	sum = python_mix(sum, w->code[py->code_line & PYTHON_WORD_MAX]);
	sum = python_mix(sum, w->code[py->code_lines & PYTHON_WORD_MAX]);
	*digest = (__u32)(sum >> 32);
	return 0;
}

/* Is the instruction at @op one of the function in @w->code? */
PYTHON_INLINE int php_has(const struct python_walk *w, const struct event_python *py, __u64 op)
{
	__u64 nr = (__u32)(w->code[py->code_start & PYTHON_WORD_MAX]);

	return op - w->code[py->code_lines & PYTHON_WORD_MAX] < nr * PHP_OP_BYTES;
}

/* The line of the instruction at @op, as event_frame.at.  While an exception is handled another
 * stands in its place, and PHP keeps which one it was.  0: that is not known. */
PYTHON_INLINE __u32 php_at(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			   __u64 op)
{
	if (!php_has(w, py, op)) {
		if (PYTHON_READ(&w->part[0], py->key, 8) || !php_has(w, py, w->part[0]))
			return 0;
		op = w->part[0];
	}
	if (PYTHON_READ(&w->part[0], op + PHP_OP_LINE, 4))
		return 0;
	return (__u32)w->part[0] < (1u << 28) - 2 ? (__u32)w->part[0] + 2 : 0;
}

/* Go to the frame of the generator that delegates to @w->inner, or to the innermost one if that is
 * 0. Each knows only to which one it delegates, its parent.  -1: it is not found. */
PYTHON_INLINE int php_go_outwards(PYTHON_ARG struct python_walk *w)
{
	__u64 at = w->leaf, found = 0;

	for (int i = 0; i < PHP_MOST_DELEGATING && !found; i++) {
		if (!python_is_address(at) ||
		    PYTHON_READ(&w->part[0], at + PHP_GENERATOR_PARENT, 8) ||
		    !python_is_address(w->part[0]))
			return -1;
		if (w->inner)
			found = w->part[0] == w->inner;
		else if (PYTHON_READ(&w->part[1], w->part[0] + PHP_GENERATOR_PARENT, 8))
			return -1;
		else
			found = !w->part[1];
		if (!found)
			at = w->part[0];
	}
	if (!found || PYTHON_READ(&w->part[0], at + PHP_GENERATOR_FRAME, 8))
		return -1;
	w->inner = at;
	w->frame = w->part[0];
	return 0;
}

/*
 * The frame in *@to is a generator's.  Where others delegate to it (yield from), a frame without a
 * function stands for all of them, and has the outermost, which alone was called by execute_ex():
 * see zend_generator_check_placeholder_frame().  -1: they cannot be read.
 */
PYTHON_INLINE int php_leave_generator(PYTHON_ARG struct python_walk *w,
				      const struct event_python *py, struct event_frame *to)
{
	if (w->leaf && w->inner == w->leaf) {
		w->frame = w->outer;
		w->leaf = 0;
		return 0;
	}
	if (!w->leaf) {
		if (!python_is_address(w->frame) ||
		    PYTHON_READ(w->part, w->frame + PHP_FRAME_FUNCTION * 8, 32) || w->part[0] ||
		    (__u8)w->part[2] != PHP_IS_OBJECT || !python_is_address(w->part[1]))
			return 0;
		w->leaf = w->part[1];
		w->inner = 0;
		w->outer = w->part[3];
		if (PYTHON_READ(&w->part[0], w->leaf + PHP_OBJECT_CLASS, 8) ||
		    PYTHON_READ(&w->part[1], py->code_type, 8) || w->part[0] != w->part[1]) {
			w->leaf = 0;
			return 0;
		}
	}
	to->code &= ~EVENT_FRAME_ENTRY;
	return php_go_outwards(PYTHON_PASS w);
}

/* Fill *@to from the frame at @w->frame, and go on to its caller.  1: that was one of C, or of
 * none, and *@to is nothing.  -1: it cannot be read. */
PYTHON_INLINE int php_step(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			   struct event_frame *to)
{
	__u64 code;
	int err;

	if (!python_is_address(w->frame) || PYTHON_READ(w->words, w->frame, PHP_FRAME_BYTES))
		return -1;
	code = w->words[PHP_FRAME_FUNCTION];
	w->frame = w->words[PHP_FRAME_PREVIOUS];
	if (!code)
		return 1;
	err = php_digest(PYTHON_PASS w, py, code, &to->digest);
	if (err)
		return err;
	to->at = php_at(PYTHON_PASS w, py, w->words[PHP_FRAME_OPLINE]);
	to->code = code;
	if (w->words[PHP_FRAME_INFO] & PHP_FRAME_TOP)
		to->code |= EVENT_FRAME_ENTRY;
	return w->words[PHP_FRAME_INFO] & PHP_FRAME_GENERATOR
		       ? php_leave_generator(PYTHON_PASS w, py, to)
		       : 0;
}

/* Begin at the innermost frame, if this is the @main thread: PHP without threads (NTS) is executed
 * by that one.  -1: it executes none. */
PYTHON_INLINE int php_begin(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			    int main)
{
	w->frame = w->leaf = 0;
	if (!main || PYTHON_READ(&w->part[0], py->current, 8))
		return -1;
	w->frame = w->part[0];
	return w->frame ? 0 : -1;
}

#endif
