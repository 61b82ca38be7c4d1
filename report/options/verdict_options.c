/* verdict_options.c - see verdict_options.h */
#include "report/options/verdict_options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cmdline/values.h"

/* One word after the other: their bits are in the order of the option's values. */
int apply_verdict(struct report_opts *opts, const struct option_info *o, const char *text)
{
	char word[32];
	int number;

	for (size_t len;; text += len + 1) {
		len = strcspn(text, ",");
		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		number = len < sizeof(word) ? option_word(o, word) : option_word(o, text);
		if (number < 0)
			return number;
		opts->verdicts |= 1u << number;
		if (!text[len])
			return 0;
	}
}

int apply_lost(struct report_opts *opts, const struct option_info *o, const char *text)
{
	(void)text;
	(void)o;
	opts->verdicts |= LOST_VERDICTS;
	return 0;
}

#define MOST_TAG 0xfff /* within a page: a word with a tag in high bits is not in a trace */

int apply_tag_mask(struct report_opts *opts, const struct option_info *o, const char *text)
{
	if (value_address(text, &opts->tag_mask) || !opts->tag_mask || opts->tag_mask > MOST_TAG)
		return option_refuse(o,
				     "low bits, 0x1 to 0xfff, as words with tags in high bits "
				     "are not in a trace",
				     text);
	return 0;
}

int apply_root(struct report_opts *opts, const struct option_info *o, const char *text)
{
	struct root_choice root = {.text = text, .named = !isdigit((unsigned char)text[0])};

	if (root.named ? !text[0] : value_range(text, &root.start, &root.end))
		return option_refuse(o, ROOT_EXPECTED, text);
	opts->roots[opts->nr_roots++] = root;
	return 0;
}
