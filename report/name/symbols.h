/* symbols.h - from frames to labels: symbolize each distinct frame once */
#ifndef REPORT_SYMBOLS_H
#define REPORT_SYMBOLS_H

#include <stdbool.h>

#include "report/base/hash_index.h"
#include "report/name/labels.h"
#include "report/trace/trace_modules.h"

/* To be read by all. */
struct symbols {
	INTERN_OF(struct dwunw_frame); /* the distinct frames */
	/* After symbols_resolve(), of the first nr_named: */
	size_t nr_named;
	struct dwunw_symbol *symbols; /* of each frame */
	uint32_t *labels;	      /* of all frames, one after the other */
	size_t nr_labels, labels_room;
	bool guessed;	/* some of them */
	bool generated; /* some are of generated code without names */
	char **texts;	/* of the symbols of generated code */
	size_t nr_texts, texts_room;
	bool *unnamed;	    /* of each frame: its function was looked for in vain */
	size_t *first;	    /* of each frame: where its labels begin; and where the last ones end */
	uint32_t *by_place; /* numbers of frames, by dwunw_frame_place(); others are undefined */
	size_t nr_places;
};

/* At the end of a name: the frame was guessed, because there is no call frame information. */
#define NAMES_GUESSED " [guessed]"

/* The name of code that a process generated, where no names of that are known. */
#define NAMES_GENERATED "[generated code]"

/* How frames are named. */
struct symbols_opts {
	bool addresses; /* MODULE+0xADDR for every frame; nothing is symbolized */
	bool offsets;	/* FUNCTION+0xOFFSET */
	bool lines;	/* labels have locations */
	bool inlined;	/* the functions inlined at a frame have labels, too: `NAME (inlined)` */
};

/* No frames yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int symbols_new(struct symbols **out);

/* Note @nr frames that are to be named; they are copied.  Returns 0 or -ENOMEM. */
int symbols_want(struct symbols *names, const struct dwunw_frame *frames, size_t nr);

/* What knows the modules of frames. */
struct symbols_source {
	struct dwunw *dw;		    /* that has the frames in stacks */
	const struct trace_modules *images; /* modules that it does not have */
};

/* What the runtime called the function that @frame is in, or NAMES_GENERATED; NULL: it is in no
 * generated code.  Valid as long as @source. */
const char *symbols_code(const struct symbols_source *source, const struct dwunw_frame *frame);

/* The path of the module that @frame is in, "" where there is none, or NAMES_GENERATED; valid as
 * long as @source. */
const char *symbols_module_path(const struct symbols_source *source,
				const struct dwunw_frame *frame);

/* Name all frames noted since the last time.  The labels are added to @labels, which must be the
 * same each time, as must the others be.  Returns 0 or -ENOMEM. */
int symbols_resolve(struct symbols *names, const struct symbols_source *source,
		    const struct symbols_opts *opts, struct labels *labels);

/* The numbers of the labels of @frame, which was noted before symbols_resolve(), innermost first;
 * the last, at least one, is that of the frame itself.  Valid until symbols_resolve() or
 * symbols_free(). */
const uint32_t *symbols_labels(const struct symbols *names, const struct dwunw_frame *frame,
			       size_t *nr);

/* The same of the frame that dwunw_frame_place() has the number @place for. */
static inline const uint32_t *symbols_labels_at(const struct symbols *names, uint32_t place,
						size_t *nr)
{
	const size_t *first = &names->first[names->by_place[place]];

	*nr = first[1] - first[0];
	return &names->labels[first[0]];
}

/* What is known of @frame, which was noted before symbols_resolve().  Its strings are as the
 * program has them.  Valid as long. */
const struct dwunw_symbol *symbols_symbol(const struct symbols *names,
					  const struct dwunw_frame *frame);

/* Call @visit with @arg for each distinct frame whose function symbols_resolve() looked for in
 * vain, in the order in which they were noted. */
void symbols_each_unnamed(const struct symbols *names,
			  void (*visit)(void *arg, const struct dwunw_frame *frame), void *arg);

/* Release @names; NULL is allowed. */
void symbols_free(struct symbols *names);

#endif
