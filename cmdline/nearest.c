/* nearest.c - which name a misspelt word may have meant */
#include <string.h>

#include "cmdline/options.h"

#define MOST_LETTERS 48
#define MOST_EDITS   2

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters must be changed, added, left out or swapped with the next one to make @a of @b,
 * the optimal string alignment distance.  Both are no longer than MOST_LETTERS. */
static size_t edit_distance(const char *a, size_t nr_a, const char *b, size_t nr_b)
{
	size_t d[MOST_LETTERS + 1][MOST_LETTERS + 1];

	for (size_t i = 0; i <= nr_a; i++)
		for (size_t j = 0; j <= nr_b; j++) {
			if (!i || !j) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = least(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
					least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[nr_a][nr_b];
}

int nearest_name(const char *names, const char *word)
{
	size_t len = strlen(word), best = MOST_EDITS + 1;
	int found = -1, i = 0;

	for (const char *at = names; *at; at += *at == ' ', i++) {
		size_t nr = strcspn(at, " "), edits = MOST_LETTERS;

		if (nr <= MOST_LETTERS && len <= MOST_LETTERS)
			edits = edit_distance(at, nr, word, len);
		/* Of a short word two edits leave nothing. */
		if (edits < best && edits * 2 < len) {
			best = edits;
			found = i;
		}
		at += nr;
	}
	return found;
}
