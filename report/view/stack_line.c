/* stack_line.c - the functions of a stack in a line; see stack_names.h */
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/name/runtime_names.h"
#include "report/name/short_name.h"
#include "report/view/recursion.h"
#include "report/view/stack_names_state.h"

#define MORE	     "..." /* callers that there is no room for */
#define MOST_IN_LINE 60	   /* columns of a caller's name beside others */

/* What a line says of @period calls of @path, which come @times; to be freed. */
static char *calls_text(const struct stack_names *named, const uint32_t *path, size_t period,
			size_t times, size_t columns)
{
	char number[TEXT_NUMBER_MAX], *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; out && i < period; i++) {
		fputs(i ? " < " : "", out);
		name_print(out, named->labels->all[path[i]].name, columns);
	}
	if (out && times > 1)
		fprintf(out, " x %s", text_number(number, times));
	if (out && !fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Print the @nr frames of @path into a line of @columns, as far as they fit.  Returns how many. */
static size_t print_line_of(const struct stack_names *named, FILE *out, const uint32_t *path,
			    size_t nr, size_t columns)
{
	uint32_t keys[VIEW_MAX_PATH];
	size_t used = 0, shown = 0, at, period, times = 1;

	stack_names_keys(named, path, nr, keys);
	for (at = 0; at < nr; at += period * times) {
		const char *before = at ? " < " : "";
		size_t more;
		char *text;

		period = named->full_recursion ? 1 : recursion_at(keys, nr, at, &times);
		text = calls_text(named, path + at, period, times, at ? MOST_IN_LINE : columns);
		/* the first is there in any case, as is what says that there are more */
		used += strlen(before) + (text ? text_columns(text) : 0);
		more = at + period * times < nr ? strlen(" < " MORE) : 0;
		if (at && used + more > columns) {
			fputs(shown + strlen(" < " MORE) <= columns ? " < " MORE : "", out);
			free(text);
			return at;
		}
		shown = used;
		fprintf(out, "%s%s", before, text ? text : "");
		free(text);
	}
	return at;
}

/* Is frame @at of @path the program's own? */
static bool is_own(const struct stack_names *named, const uint32_t *path, size_t at)
{
	const struct label *label = &named->labels->all[path[at]];

	return !is_runtime_function(label->name, named->labels->modules->all[label->module]);
}

/* The innermost frame that is the program's own; @nr: there is none. */
static size_t first_own(const struct stack_names *named, const uint32_t *path, size_t nr)
{
	size_t at = 0;

	while (at < nr && !is_own(named, path, at))
		at++;
	return at;
}

/* Functions that are to be in a line, innermost first; of the others as many as fit. */
struct picks {
	size_t at[3];
	size_t nr;
};

/* Print the functions of @picks, "..." for what is between, and behind the last as many as there is
 * room for.  False: not all of @picks fit, and what was printed is of no use. */
static bool print_picks(const struct stack_names *named, FILE *out, const uint32_t *path, size_t nr,
			const struct picks *picks, size_t columns)
{
	size_t used = 0;

	for (size_t i = 0; i < picks->nr; i++) {
		size_t before = i ? picks->at[i - 1] + 1 : 0, at = picks->at[i];
		const char *name = named->labels->all[path[at]].name;
		const char *gap = at > before ? (i ? " < " MORE " < " : MORE " < ")
				  : i	      ? " < "
					      : "";
		bool last = i + 1 == picks->nr;

		used += strlen(gap) + text_columns(name);
		if (used > columns)
			return false;
		if (!last)
			fprintf(out, "%s%s", gap, name);
		else
			fputs(gap, out);
		if (last)
			print_line_of(named, out, path + at, nr - at,
				      columns - used + text_columns(name));
	}
	return true;
}

static void add_pick(struct picks *picks, size_t at)
{
	if (!picks->nr || picks->at[picks->nr - 1] < at)
		picks->at[picks->nr++] = at;
}

/* What is tried one after the other, from much to little: the innermost function, @from and @own;
 * at last @must alone.  Returns how many tries there are. */
static size_t choose_picks(struct picks tries[4], size_t from, size_t own, size_t must)
{
	size_t low = from && from < own ? from : own, high = from > own ? from : own;

	memset(tries, 0, 4 * sizeof(*tries));
	add_pick(&tries[0], 0);
	add_pick(&tries[0], low);
	add_pick(&tries[0], high);
	add_pick(&tries[1], low);
	add_pick(&tries[1], high);
	add_pick(&tries[2], 0);
	add_pick(&tries[2], must);
	add_pick(&tries[3], must);
	return 4;
}

/* The line of @picks; NULL: there is no room for them, unless they are the @last that is tried.  To
 * be freed. */
static char *line_with(const struct stack_names *named, const uint32_t *path, size_t nr,
		       const struct picks *picks, size_t columns, bool last)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool fits = out && print_picks(named, out, path, nr, picks, columns);

	if (out && !fits && last) {
		size_t at = picks->at[0], gap = at ? strlen(MORE " < ") : 0;

		rewind(out);
		fputs(at ? MORE " < " : "", out);
		print_line_of(named, out, path + at, nr - at, columns > gap ? columns - gap : 0);
		fits = true;
	}
	if (out && !fclose(out) && fits)
		return text;
	free(text);
	return NULL;
}

/* All of them that fit; *@shown is how many these are. */
static char *whole_line(const struct stack_names *named, uint32_t id, const uint32_t *path,
			size_t nr, size_t columns, size_t *shown)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	*shown = nr;
	if (out && !nr)
		fprintf(out, "[no stack: %s]",
			dwunw_status_text(dwunw_stack_status(named->source.dw, id)));
	if (out)
		*shown = print_line_of(named, out, path, nr, columns);
	if (out && !fclose(out))
		return text;
	free(text);
	return NULL;
}

char *stack_names_line(const struct stack_names *named, uint32_t id, size_t columns, size_t from)
{
	uint32_t path[STACK_MAX_FRAMES] = {0};
	size_t nr = stack_names_outer(named, id, path), shown, own, nr_tries;
	char *text = whole_line(named, id, path, nr, columns, &shown);
	struct picks tries[4];

	own = first_own(named, path, nr);
	from = from < nr ? from : 0;
	own = own < nr ? own : from;
	if (!text || (from < shown && own < shown) || !nr)
		return text;
	free(text);
	text = NULL;
	/* what distinguishes it, if that is the program's, too */
	nr_tries = choose_picks(tries, from, own, from && is_own(named, path, from) ? from : own);
	for (size_t i = 0; !text && i < nr_tries; i++)
		text = line_with(named, path, nr, &tries[i], columns, i + 1 == nr_tries);
	return text;
}

const char *stack_names_own_place(const struct stack_names *named, uint32_t id)
{
	uint32_t path[STACK_MAX_FRAMES] = {0};
	size_t nr = stack_names_outer(named, id, path), own = first_own(named, path, nr);

	return own < nr ? text_file_name(named->labels->all[path[own]].location) : "";
}
