/* stack_names.h - the names of single stacks, apart from a view: those of some blocks
 *
 * Stacks go by the unwinder's numbers for them.  Innermost frames in the preloaded library are left
 * out.
 */
#ifndef REPORT_NAMED_H
#define REPORT_NAMED_H

#include "report/base/json.h"
#include "report/view/view.h"

struct named; /* opaque */

/* None yet; @source (its parts) is borrowed until named_free(), of @opts what names depend on is
 * copied.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int named_new(struct named **out, const struct names_source *source, const struct view_opts *opts);

/* Stack @id is to be named.  Returns 0 or -ENOMEM. */
int named_want(struct named *named, uint32_t id);

/* Name them all, once.  Returns 0 or -ENOMEM. */
int named_resolve(struct named *named);

/* Print stack @id, which was wanted, innermost first: a line each, behind @indent. */
void named_print(const struct named *named, FILE *out, uint32_t id, const char *indent);

/* Write it as an array of frames, and whether it is complete, as members of the object at hand. */
void named_json(const struct named *named, struct json *json, uint32_t id);

/* Release @named; NULL is allowed. */
void named_free(struct named *named);

#endif
