/* plain_text.h - texts of PHP's and Ruby's functions, which are bytes with a length */
#ifndef MLEAK_BPF_PLAIN_TEXT_H
#define MLEAK_BPF_PLAIN_TEXT_H

#include "bpf/python_walk.h"

#define PLAIN_TEXT_MAX 65536 /* bytes; one that is longer is none */

/* One of them; with length 0 it has no address. */
struct plain_text {
	__u64 addr, len;
	__u64 has_words; /* 8 bytes may be read at addr, even if it is shorter */
};

/* What a function is called, and where it is from. */
struct plain_code {
	struct plain_text name, file, class;
	__u32 first_line;
};

/* Mix into @sum how long @text is, and its last characters, where they can be read. */
PYTHON_INLINE __u64 plain_mix_text(PYTHON_ARG struct python_walk *w, const struct plain_text *text,
				   __u64 sum)
{
	__u64 from = text->len > 8 ? text->len - 8 : 0;

	sum = python_mix(python_mix(sum, text->addr), text->len);
	if (!text->len || (text->len < 8 && !text->has_words) ||
	    PYTHON_READ(&w->part[0], text->addr + from, 8))
		return sum;
	if (text->len < 8)
		w->part[0] &= (1ull << text->len * 8) - 1;
	return python_mix(sum, w->part[0]);
}

/* A digest of both. */
PYTHON_INLINE __u64 plain_mix(PYTHON_ARG struct python_walk *w, const struct plain_text *name,
			      const struct plain_text *file)
{
	return plain_mix_text(PYTHON_PASS w, name, plain_mix_text(PYTHON_PASS w, file, 0));
}

#endif
