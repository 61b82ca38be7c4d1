/* frames_walk.h - from frame to frame of whatever interprets, as python_walk.h and php_walk.h do it
 */
#ifndef MLEAK_BPF_FRAMES_WALK_H
#define MLEAK_BPF_FRAMES_WALK_H

#include "bpf/php_walk.h"
#include "bpf/python_walk.h"

PYTHON_INLINE int frames_step(PYTHON_ARG struct python_walk *w, const struct event_python *py,
			      struct event_frame *to)
{
	return py->shape == PYTHON_IS_PHP ? php_step(PYTHON_PASS w, py, to)
					  : python_step(PYTHON_PASS w, py, to);
}

/* The digest of the function at @code, and its words into @w->code.  Not 0: it cannot be read. */
PYTHON_INLINE int frames_digest(PYTHON_ARG struct python_walk *w, const struct event_python *py,
				__u64 code, __u32 *digest)
{
	return py->shape == PYTHON_IS_PHP ? php_digest(PYTHON_PASS w, py, code, digest)
					  : python_digest(PYTHON_PASS w, py, code, digest);
}

#endif
