/* recursion.c - see recursion.h */
#include "report/view/recursion.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"

/* How often the @period keys at @at come in a row. */
static size_t times_of(const uint32_t *keys, size_t nr, size_t at, size_t period)
{
	size_t same = 0;

	while (at + same + period < nr && keys[at + same] == keys[at + same + period])
		same++;
	return same / period + 1;
}

size_t recursion_at(const uint32_t *keys, size_t nr, size_t at, size_t *times)
{
	size_t best = 1;

	*times = 1;
	for (size_t period = 1; period <= RECURSION_MAX_PERIOD && at + period < nr; period++) {
		size_t found = times_of(keys, nr, at, period);

		/* a longer period is better only if it covers more */
		if (found < (period == 1 ? 2 : 3) || found * period <= best * *times)
			continue;
		best = period;
		*times = found;
	}
	return best;
}

void recursion_print(FILE *out, const char *indent, size_t period, size_t times)
{
	char number[TEXT_NUMBER_MAX];

	if (times < 2)
		return;
	if (period == 1)
		fprintf(out, "%s[the call above x %s]\n", indent, text_number(number, times));
	else
		fprintf(out, "%s[the %zu calls above x %s]\n", indent, period,
			text_number(number, times));
}

int recursion_init(struct recursion *recursion, struct labels *labels)
{
	*recursion = (struct recursion){.labels = labels};
	return label_functions_update(&recursion->functions, labels);
}

/* The label of the @nr functions at @path, which call each other in turn. */
static int label_of_cycle(struct labels *labels, const uint32_t *path, size_t nr, uint32_t *number)
{
	size_t len;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	int err = -ENOMEM;

	for (size_t i = 0; out && i < nr; i++)
		fprintf(out, "%s%s", i ? " > " : "", labels->all[path[i]].name);
	if (out && !fclose(out))
		err = labels_intern(labels, LABELS_NO_MODULE, text, "", number);
	free(text);
	return err;
}

int recursion_fold(struct recursion *recursion, const uint32_t *path, size_t nr,
		   struct recursion_path *out)
{
	uint32_t keys[VIEW_MAX_PATH];
	size_t period, times;
	int err = 0;

	out->nr = 0;
	for (size_t i = 0; i < nr; i++)
		keys[i] = recursion->functions.all[path[i]];
	for (size_t at = 0; at < nr && !err; at += period * times) {
		uint32_t *label = &out->labels[out->nr];

		period = recursion_at(keys, nr, at, &times);
		*label = path[at];
		if (period > 1)
			err = label_of_cycle(recursion->labels, path + at, period, label);
		/* where several functions call, their lines would be no one's */
		out->repeats[out->nr++] = (struct tree_repeat){
			.times = (uint32_t)times,
			.labels = path + at,
			.nr = period > 1 ? 0 : times,
		};
	}
	return err;
}

void recursion_release(struct recursion *recursion)
{
	label_functions_release(&recursion->functions);
	*recursion = (struct recursion){0};
}
