/* arena_hint.c - see arena_hint.h */
#include "report/context/arena_hint.h"

#include <string.h>
#include <strings.h>

/* Bytes of a block: smaller ones are what the program asked for.  Chunks of obstack have 4,064, and
 * those of some pools 4,096 less what the C library needs. */
#define LARGE	  2048
#define INNERMOST 4 /* functions that are looked at */

/* Parts of names, in any case. */
static const char *const arenas[] = {"palloc", "obstack", "allocset", "extent",	  "arena",
				     "_pool",  "pool_",	  "slab",     "new_chunk"};

static bool is_arena(const char *function)
{
	for (; *function; function++)
		for (size_t i = 0; i < sizeof(arenas) / sizeof(*arenas); i++)
			if (!strncasecmp(function, arenas[i], strlen(arenas[i])))
				return true;
	return false;
}

void arena_hint_print(FILE *out, const struct report_data *export, const struct growth_row *row,
		      struct live_amount amount)
{
	size_t nr;
	const uint32_t *path = places_path(export->places, row->i, &nr);

	if (!amount.blocks || amount.bytes / amount.blocks < LARGE)
		return;
	for (size_t at = 0; at < nr && at < INNERMOST; at++) {
		const char *function = export->places->all[path[at]].function;

		if (!is_arena(function))
			continue;
		fprintf(out,
			"    hint: %s gives these blocks out in parts; who holds the parts is not "
			"in the stack\n",
			function);
		return;
	}
}
