/* info_interpreters.c - see info_interpreters.h */
#include "report/info_interpreters.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/base/text.h"

static void put_counts(const struct mlk_interpreter *of)
{
	char number[TEXT_NUMBER_MAX];
	const char *before = ":";

	for (int i = 0; i < MLK_INTERPRETED_NR; i++) {
		if (i > MLK_INTERPRETED_NONE && !of->counts[i])
			continue;
		printf("%s %s %s", before, text_number(number, of->counts[i]),
		       mlk_interpreted_text((enum mlk_interpreted)i));
		before = ",";
	}
}

void info_interpreters_put(const struct interpreted *in)
{
	for (size_t i = 0; i < in->nr_of; i++) {
		const struct mlk_interpreter *of = &in->all_of[i];

		printf("%-12s %" PRIu32 " %s ", "interpreter", of->tgid,
		       mlk_language_text(of->language));
		text_print(stdout, of->version);
		if (of->known) {
			put_counts(of);
		} else {
			fputs(": without its functions, as ", stdout);
			text_print(stdout, of->why);
		}
		putchar('\n');
	}
}
