/* symbols.h - from frames to labels: symbolize each distinct frame once */
#ifndef REPORT_NAMES_H
#define REPORT_NAMES_H

#include <stdbool.h>

#include "report/trace/trace_modules.h"
#include "report/name/labels.h"

struct names; /* opaque */

/* At the end of a name: the frame was guessed, for there is no call frame information. */
#define NAMES_GUESSED " [guessed]"

struct names_opts {
	bool addresses; /* MODULE+0xADDR for every frame; nothing is symbolized */
	bool lines;	/* labels have locations */
	bool inlined;	/* the functions inlined at a frame have labels, too: `NAME (inlined)` */
};

/* No frames yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int names_new(struct names **out);

/* Note @nr frames that are to be named; they are copied.  Returns 0 or -ENOMEM. */
int names_want(struct names *names, const struct dwunw_frame *frames, size_t nr);

/* What knows the modules of frames. */
struct names_source {
	struct dwunw *dw;
	const struct images *images; /* those that @dw does not have */
};

/* The path of the module that @frame is in, "" where there is none; valid as long as @source. */
const char *names_module_path(const struct names_source *source, const struct dwunw_frame *frame);

/* Name all frames noted so far, once.  The labels are added to @labels.  Returns 0 or -ENOMEM. */
int names_resolve(struct names *names, const struct names_source *source,
		  const struct names_opts *opts, struct labels *labels);

/* The numbers of the labels of @frame, which was noted before names_resolve(), innermost first; the
 * last, at least one, is that of the frame itself.  Valid until names_free(). */
const uint32_t *names_labels(const struct names *names, const struct dwunw_frame *frame,
			     size_t *nr);

/* Is any of the labels that of a frame that was guessed? */
bool names_guessed(const struct names *names);

/* What is known of @frame, which was noted before names_resolve().  Its strings are as the program
 * has them.  Valid until names_free(). */
const struct dwunw_symbol *names_symbol(const struct names *names, const struct dwunw_frame *frame);

/* Call @visit with @arg for each distinct frame whose function names_resolve() looked for in vain,
 * in the order in which they were noted. */
void names_each_unnamed(const struct names *names,
			void (*visit)(void *arg, const struct dwunw_frame *frame), void *arg);

/* Release @names; NULL is allowed. */
void names_free(struct names *names);

#endif
