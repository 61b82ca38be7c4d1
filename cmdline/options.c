/* options.c - getopt_long() over a command's rows, and the help that is made of them */
#include "cmdline/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmdline/values.h"

#define MOST_TOLD 1048576 /* limits above it are of no interest */

/* What getopt_long() wants, made from the rows. */
struct tables {
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 3];
};

static void make_tables(struct tables *t, option_rows *rows, bool leads)
{
	struct option_info o;
	char *at = t->shorts;

	memset(t, 0, sizeof(*t));
	if (leads)
		*at++ = '+';
	*at++ = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < OPTIONS_MAX && rows(i, &o); i++) {
		t->longs[i] = (struct option){
			.name = o.name,
			.has_arg = !o.arg	   ? no_argument
				   : *o.arg == '[' ? optional_argument
						   : required_argument,
			.val = o.key,
		};
		if (!option_letter(&o))
			continue;
		*at++ = (char)o.key;
		if (o.arg)
			*at++ = ':';
	}
}

static bool find_row(option_rows *rows, int key, struct option_info *o)
{
	for (size_t i = 0; rows(i, o); i++)
		if (o->key == key)
			return true;
	return false;
}

/* The long names that begin as @word does, up to any '=', into @names: "--folded or --format". */
static int list_beginning(option_rows *rows, const char *word, char *names, size_t size)
{
	size_t len = strcspn(word, "="), used = 0;
	struct option_info o;
	int nr = 0;

	for (size_t i = 0; rows(i, &o); i++)
		if (!strncmp(o.name, word, len) && used < size)
			used += (size_t)snprintf(names + used, size - used, "%s--%s",
						 nr++ ? " or " : "", o.name);
	return nr;
}

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

static int refuse_long(option_rows *rows, const char *command, const char *word)
{
	char names[OPTIONS_MAX * 32] = "", name[64];
	struct option_info o;
	int nearest;

	if (list_beginning(rows, word + 2, names, sizeof(names)) > 1) {
		log_error("'%s' may be %s; 'mleak %s --help' lists the options", word, names,
			  command);
		return -EINVAL;
	}
	names[0] = '\0';
	for (size_t i = 0; rows(i, &o); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ", o.name);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	nearest = nearest_name(names, name);
	if (nearest >= 0 && rows((size_t)nearest, &o))
		log_error("unknown option '%s', did you mean --%s? 'mleak %s --help' lists the "
			  "options",
			  word, o.name, command);
	else
		log_error("unknown option '%s'; 'mleak %s --help' lists the options", word,
			  command);
	return -EINVAL;
}

/* What getopt_long() stumbled over. */
static int refuse_option(option_rows *rows, int problem, char **argv)
{
	const char *command = argv[0];
	struct option_info o;

	if (optopt && find_row(rows, optopt, &o))
		log_error("option '--%s' wants %s value; 'mleak %s --help' lists the options",
			  o.name, problem == ':' ? "a" : "no", command);
	else if (optopt)
		/* the word it is in may not be behind optind yet: others can follow in it */
		log_error("unknown option '-%c'; 'mleak %s --help' lists the options", optopt,
			  command);
	else
		return refuse_long(rows, command, argv[optind - 1]);
	return -EINVAL;
}

int options_read(option_rows *rows, bool leads, int argc, char **argv, option_apply_fn *apply,
		 void *ctx)
{
	struct tables tables;
	struct option_info o;
	int key, err = 0;

	make_tables(&tables, rows, leads);
	opterr = 0;
	optind = 0; /* begin anew, wherever main() was */
	while (!err && (key = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1)
		err = key != '?' && key != ':' && find_row(rows, key, &o)
			      ? apply(ctx, &o, optarg)
			      : refuse_option(rows, key, argv);
	return err;
}

int option_refuse(const struct option_info *o, const char *wanted, const char *text)
{
	/* a word that stands where it stands is no option */
	log_error("%s%s wants %s, not '%s'", o->key ? "--" : "", o->name, wanted, text);
	return -EINVAL;
}

int option_number(const struct option_info *o, const char *text, uint64_t least, uint64_t most,
		  const char *wanted, uint64_t *value)
{
	char usual[64] = "a number";

	if (!value_number(text, value) && *value >= least && *value <= most)
		return 0;
	if (most <= MOST_TOLD)
		snprintf(usual, sizeof(usual), "a number from %" PRIu64 " to %" PRIu64, least,
			 most);
	else if (least)
		snprintf(usual, sizeof(usual), "a number from %" PRIu64, least);
	return option_refuse(o, wanted ? wanted : usual, text);
}

int option_bytes(const struct option_info *o, const char *text, uint64_t least, uint64_t most,
		 const char *wanted, uint64_t *value)
{
	if (!value_bytes(text, value) && *value >= least && *value <= most)
		return 0;
	return option_refuse(o, wanted ? wanted : "a number of bytes as 4096 or 64K", text);
}

int option_time(const struct option_info *o, const char *text, uint64_t least_ns, uint64_t *ns)
{
	if (!value_time(text, ns) && *ns >= least_ns)
		return 0;
	return option_refuse(o, "a time as 10, 10s, 500ms, 5m, 2h or 1d", text);
}

/* "a, b or c" of "a b c". */
static void list_words(const char *words, char *list, size_t size)
{
	size_t used = 0;

	for (const char *at = words; *at && used < size; at += *at == ' ') {
		int len = (int)strcspn(at, " ");
		const char *before = at == words ? "" : at[len] ? ", " : " or ";

		used += (size_t)snprintf(list + used, size - used, "%s%.*s", before, len, at);
		at += len;
	}
}

int option_word(const struct option_info *o, const char *text)
{
	char wanted[256] = "";
	int i = 0;

	for (const char *at = o->values; *at; at += *at == ' ', i++) {
		size_t len = strcspn(at, " ");

		if (strlen(text) == len && !memcmp(at, text, len))
			return i;
		at += len;
	}
	list_words(o->values, wanted, sizeof(wanted));
	return option_refuse(o, wanted, text);
}

enum { HELP_COLUMN = 27, HELP_WIDTH = 96 };

/* The length of what stands on one line from @text on: a word, and any option behind it, for a line
 * that begins with one would look like the next option's. */
static size_t unbroken(const char *text)
{
	size_t len = strcspn(text, " ");

	while (text[len] && text[len + 1] == '-')
		len += 1 + strcspn(text + len + 1, " ");
	return len;
}

/* Print @text from HELP_COLUMN on, where the cursor is in @column. */
static void print_wrapped(const char *text, size_t column)
{
	if (column + 2 > HELP_COLUMN) {
		putchar('\n');
		column = 0;
	}
	printf("%*s", (int)(HELP_COLUMN - column), "");
	column = HELP_COLUMN;
	while (*text) {
		size_t len = unbroken(text);

		if (column > HELP_COLUMN && column + 1 + len > HELP_WIDTH) {
			printf("\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len + (text[len] == ' ');
	}
	putchar('\n');
}

void print_options(option_rows *rows)
{
	struct option_info o;

	for (size_t i = 0; rows(i, &o); i++) {
		bool apart = o.arg && *o.arg != '[';
		int column;

		if (o.group)
			printf("%s%s:\n", i ? "\n" : "", o.group);
		column = option_letter(&o) ? printf("  -%c, ", o.key) : printf("      ");
		column += printf("--%s%s%s", o.name, apart ? " " : "", o.arg ? o.arg : "");
		print_wrapped(o.help, (size_t)column);
	}
}
