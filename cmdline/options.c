/* options.c - getopt_long() over a command's rows */
#include "cmdline/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmdline/values.h"

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
	log_error("--%s wants %s, not '%s'", o->name, wanted, text);
	return -EINVAL;
}

int option_number(const struct option_info *o, const char *text, uint64_t least, uint64_t most,
		  const char *wanted, uint64_t *value)
{
	if (!value_number(text, value) && *value >= least && *value <= most)
		return 0;
	return option_refuse(o, wanted ? wanted : least ? "a number from 1" : "a number", text);
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
