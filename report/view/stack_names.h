/* stack_names.h - the names of single stacks, apart from a view: those of some blocks
 *
 * Stacks go by the unwinder's numbers for them.  Innermost frames in the preloaded library are left
 * out.
 */
#ifndef REPORT_STACK_NAMES_H
#define REPORT_STACK_NAMES_H

#include "report/base/json.h"
#include "report/view/view.h"

struct stack_names; /* opaque */

/* None yet; @source (its parts) is borrowed until stack_names_free(), of @opts what names depend on
 * is copied.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int stack_names_new(struct stack_names **out, const struct symbols_source *source,
		    const struct view_opts *opts);

/* Stack @id is to be named.  Returns 0 or -ENOMEM. */
int stack_names_want(struct stack_names *named, uint32_t id);

/* Name those that were wanted since the last time.  Returns 0 or -ENOMEM. */
int stack_names_resolve(struct stack_names *named);

/* Print stack @id, which was wanted, innermost first: a line each, behind @indent. */
void stack_names_print(const struct stack_names *named, FILE *out, uint32_t id, const char *indent);

/* Write functions of stack @id, which was wanted, into a line as "f < g < main": as many as there
 * is room for in @columns.  The one at @from, the innermost being at 0, and the innermost that is
 * no library's are shown in place of those before them: "f < ... < main"; where there is room for
 * one alone, it is one that is no library's.  Returns a string that the caller frees, or NULL when
 * there is no memory. */
char *stack_names_line(const struct stack_names *named, uint32_t id, size_t columns, size_t from);

/* FILE:LINE of the innermost function of stack @id, which was wanted, that is no library's; "" if
 * it is not known.  Valid until the next stack_names_resolve(). */
const char *stack_names_own_place(const struct stack_names *named, uint32_t id);
/* Where the innermost function of stack @id, which was wanted, is of which that is known, as
 * "FILE:LINE"; "" if of none.  Valid until the next stack_names_resolve(). */
const char *stack_names_location(const struct stack_names *named, uint32_t id);

/* Write to @from for each of the @nr stacks @ids, which were wanted, where its innermost function
 * is that tells it from all the others: 0 if the innermost function of all does, or none.  Returns
 * 0 or -ENOMEM. */
int stack_names_apart(const struct stack_names *named, const uint32_t *ids, size_t nr,
		      size_t *from);

/* A number that stack @id, which was wanted, has in common only with those that have the same
 * functions and lines.  Returns 0 or -ENOMEM. */
int stack_names_number(struct stack_names *named, uint32_t id, uint32_t *number);

/* Write it as an array of frames, and whether it is complete, as members of the current object. */
void stack_names_json(const struct stack_names *named, struct json *json, uint32_t id);

/* Release @named; NULL is allowed. */
void stack_names_free(struct stack_names *named);

#endif
