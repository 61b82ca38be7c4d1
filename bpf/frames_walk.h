/* frames_walk.h - from frame to frame of whatever interprets, each as its own file does it */
#ifndef MLEAK_BPF_FRAMES_WALK_H
#define MLEAK_BPF_FRAMES_WALK_H

#include "bpf/php_walk.h"
#include "bpf/python_walk.h"
#include "bpf/ruby_walk.h"

/* Fill *@to from the frame at @w->frame, and go on to its caller, as python_step() says. */
PYTHON_INLINE int frames_step(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			      struct event_frame *to)
{
	if (py->shape == PYTHON_IS_PHP)
		return php_step(PYTHON_PASS w, py, to);
	if (py->shape == PYTHON_IS_RUBY)
		return ruby_step(PYTHON_PASS w, to);
	return python_step(PYTHON_PASS w, py, to);
}

/* The digest of the function at @code, and what it holds into @w->code.  Not 0: it cannot be read.
 */
PYTHON_INLINE int frames_digest(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				__u64 code, __u32 *digest)
{
	if (py->shape == PYTHON_IS_PHP)
		return php_digest(PYTHON_PASS w, py, code, digest);
	if (py->shape == PYTHON_IS_RUBY)
		return ruby_digest(PYTHON_PASS w, code, digest);
	return python_digest(PYTHON_PASS w, py, code, digest);
}

/* Are a function's texts found by frames_find_parts()? */
PYTHON_INLINE int frames_are_plain(const struct event_python *py)
{
	return py->shape == PYTHON_IS_PHP || py->shape == PYTHON_IS_RUBY;
}

/* Find the texts of the function of PHP or Ruby at @at.  -1: they cannot be read. */
PYTHON_INLINE int frames_find_parts(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				    __u64 at, struct plain_code *code)
{
	if (py->shape == PYTHON_IS_PHP)
		return php_read(PYTHON_PASS w, at) ? -1 : php_find_parts(PYTHON_PASS w, py, code);
	return ruby_read(PYTHON_PASS w, at) ? -1 : ruby_find_parts(PYTHON_PASS w, code);
}

#endif
