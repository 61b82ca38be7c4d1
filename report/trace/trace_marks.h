/* trace_marks.h - the moments that were marked while recording */
#ifndef REPORT_TRACE_MARKS_H
#define REPORT_TRACE_MARKS_H

#include "format/reader.h"

/* What is kept; more is counted. */
#define TRACE_MARKS_MAX	 65536
#define TRACE_MARKS_TEXT (16u << 20) /* bytes of all texts */
#define TRACE_MARKS_LATE 1024	     /* later ones that may stand before one in the trace */

#define TRACE_MARKS_PREFIX "mark:" /* what a moment's name begins with */

/* All zero: none.  They are in the order of their times. */
struct trace_marks {
	struct trace_mark {
		uint64_t time_ns; /* CLOCK_MONOTONIC */
		uint32_t kind;	  /* enum mlk_mark_kind */
		bool printed;	  /* for the reader of the list */
		char *text;
	} * all;
	size_t nr, room;
	size_t text_bytes;
	uint64_t left_out;
};

/* Keep @mark.  Returns 0 or -ENOMEM. */
int trace_marks_note(struct trace_marks *marks, const struct mlk_mark *mark);

/* Keep all of @trace, which is rewound.  Returns 0, -ENOMEM or the -errno of read(2). */
int trace_marks_read(struct trace_marks *marks, struct mlk_reader *trace);

/* Those that @name means: behind "mark:" a number from 1, or else, also where no mark has that
 * number, a text.  Returns how many; *numbers gets those of the first @most, at least 1. */
size_t trace_marks_find(const struct trace_marks *marks, const char *name, size_t *numbers,
			size_t most);

/* What is to be said of @mark: its text, or who marked it. */
const char *trace_mark_text(const struct trace_mark *mark);

/* Its kind in a word, as "signal"; "other" for one of a later version. */
const char *trace_mark_kind(const struct trace_mark *mark);

/* Release what @marks holds; then there are none. */
void trace_marks_release(struct trace_marks *marks);

#endif
