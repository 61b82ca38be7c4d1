/* name_source.h - what was not taken of a file in which a process names its generated code */
#ifndef RECORD_NAME_SOURCE_H
#define RECORD_NAME_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: all was taken. */
struct name_source {
	uint64_t left_out;   /* bytes that were not taken, */
	uint64_t beyond;     /* and those behind the most that are */
	const char *problem; /* why: static text behind "it"; NULL: nothing is left out */
	bool told;	     /* the problem was */
	uint64_t written;    /* 1 more than the bytes not taken, as the trace has them */
	bool anew;	     /* what is taken next is of another file, or program */
};

/* Note why something is left out; the first reason counts. */
static inline void name_source_problem(struct name_source *s, const char *problem)
{
	if (!s->problem)
		s->problem = problem;
}

/* Bytes that were not taken. */
static inline uint64_t name_source_missing(const struct name_source *s)
{
	return s->left_out + s->beyond;
}

/* Is the trace to be told of what is not taken? */
static inline bool name_source_is_news(const struct name_source *s)
{
	return s->problem && s->written != name_source_missing(s) + 1;
}

/* A trace begins: what was left out counts from now. */
static inline void name_source_begin_trace(struct name_source *s)
{
	*s = (struct name_source){.told = s->told};
}

#endif
