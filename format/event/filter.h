/* filter.h - which words of a stack a trace keeps: those that an unwinder may need
 *
 * Return addresses point into executable mappings, saved frame pointers into the stack; a word that
 * does neither is never needed for unwinding, and may be a secret.
 */
#ifndef MLK_FILTER_H
#define MLK_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"

#define MLK_FILTER_SPANS 8

/* What decides on a word. */
struct mlk_filter {
	enum mlk_stack_mode mode;
	/* What is executable, in few ranges: where there are more, the nearest are taken together.
	 */
	struct {
		uint64_t start, end;
	} code[MLK_FILTER_SPANS];
	unsigned int nr;
};

/* Take the executable ones among the @nr @mappings, which ascend. */
void mlk_filter_set_code(struct mlk_filter *f, const struct mlk_mapping *mappings, size_t nr);

#define MLK_NEAR_STACK (16u << 20) /* bytes around a stack, pointers into which are kept */

/* Where these begin around @sp.  The bounds are rounded, so that they are the same from one event
 * to the next. */
static inline uint64_t mlk_near_stack_from(uint64_t sp)
{
	const uint64_t mib = 1u << 20;

	return (sp & ~(mib - 1)) - mib;
}

/* Is @word code, or in the stack around @sp? */
static inline bool mlk_filter_keeps(const struct mlk_filter *f, uint64_t word, uint64_t sp)
{
	if (word - mlk_near_stack_from(sp) < MLK_NEAR_STACK)
		return true;
	for (unsigned int i = 0; i < f->nr; i++)
		if (word - f->code[i].start < f->code[i].end - f->code[i].start)
			return true;
	return false;
}

#endif
