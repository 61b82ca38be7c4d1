/* interpreted.h - interpreted functions of a trace, and frames of them among others
 *
 * Such a frame is in no module.  Its pc is none that code can have: bits that no address has, the
 * number of the function, and where in it.
 */
#ifndef REPORT_INTERPRETED_H
#define REPORT_INTERPRETED_H

#include <stdbool.h>

#include "format/code.h"
#include "report/base/hash_index.h"
#include "unwind/dwunw.h"

/* A function. */
struct interpreted_code {
	uint32_t number, zero; /* for intern_pair() */
	struct mlk_code code;  /* its texts and lines are owned */
};

/* All zero: none are known. */
struct interpreted {
	INTERN_OF(struct interpreted_code);
	struct mlk_interpreter *all_of; /* interpreters in the order of the trace */
	size_t nr_of, of_room;
};

/* Note a function, which is copied; the first of a number counts.  Returns 0 or -ENOMEM. */
int interpreted_note_code(struct interpreted *in, const struct mlk_code *code);

/* The same of an interpreter, of which a later one of the same time replaces it. */
int interpreted_note(struct interpreted *in, const struct mlk_interpreter *interpreter);

/* That which process @tgid has at @time_ns; NULL: none.  Valid until interpreted_note(). */
const struct mlk_interpreter *interpreted_find(const struct interpreted *in, uint32_t tgid,
					       uint64_t time_ns);

/* The frame of a function at @frame, in its process. */
struct dwunw_frame interpreted_frame(const struct mlk_code_frame *frame);

/* Is @frame such a one? */
static inline bool interpreted_is(const struct dwunw_frame *frame)
{
	return frame->module == DWUNW_NO_MODULE && frame->pc >> 60 == 9;
}

/* The path of the module that such a frame is shown in: "[python]", "[php]" or "[ruby]".  Static
 * text. */
const char *interpreted_module(const struct interpreted *in, const struct dwunw_frame *frame);

/* Fill @symbol with the names of such a frame, valid until interpreted_release(). */
void interpreted_symbol(const struct interpreted *in, const struct dwunw_frame *frame,
			struct dwunw_symbol *symbol);

/* Release what @in holds. */
void interpreted_release(struct interpreted *in);

#endif
