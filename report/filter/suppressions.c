/* suppressions.c - see suppressions.h */
#include "report/filter/suppressions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/array.h"
#include "report/base/sizes.h"
#include "report/base/text.h"

#define SECTION	 ".mleak.suppressions" /* as doc/trace-format.md has it */
#define MAX_TEXT (64 * 1024)

struct pattern {
	char *text;
	const char *source; /* of the sources, or NULL */
	uint64_t stacks;
	struct live_amount matched;
};

struct suppressions {
	struct pattern *all;
	size_t nr, room;
	char **sources; /* paths of modules */
	size_t nr_sources, sources_room;
};

int suppressions_new(struct suppressions **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static int add_pattern(struct suppressions *suppressions, const char *text, const char *source)
{
	struct pattern pattern = {.text = strdup(text), .source = source};
	int err = !pattern.text ? -ENOMEM
				: array_append(&suppressions->all, &suppressions->nr,
					       &suppressions->room, &pattern, sizeof(pattern));

	if (err)
		free(pattern.text);
	return err;
}

/* Take in one line, which is changed. */
static int add_line(struct suppressions *suppressions, char *line, const char *source)
{
	static const char kind[] = "leak:";
	size_t len;

	line += strspn(line, " \t");
	len = strlen(line);
	while (len && strchr(" \t\r\n", line[len - 1]))
		line[--len] = '\0';
	if (!len || *line == '#')
		return 0;
	if (strncmp(line, kind, sizeof(kind) - 1) != 0 || !line[sizeof(kind) - 1])
		return -EINVAL;
	return add_pattern(suppressions, line + sizeof(kind) - 1, source);
}

int suppressions_load(struct suppressions *suppressions, const char *path, size_t *line)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	int err = 0;

	*line = 0;
	if (!file)
		return -errno;
	errno = 0; /* which says of a directory what it is */
	while (!err && getline(&text, &room, file) >= 0) {
		++*line;
		err = add_line(suppressions, text, NULL);
	}
	if (!err && ferror(file))
		err = errno ? -errno : -EIO;
	free(text);
	fclose(file);
	return err;
}

/* A copy of @path that lives as long as @suppressions, or NULL. */
static const char *add_source(struct suppressions *suppressions, const char *path)
{
	char *copy = strdup(path);

	if (copy && !array_append(&suppressions->sources, &suppressions->nr_sources,
				  &suppressions->sources_room, &copy, sizeof(copy)))
		return copy;
	free(copy);
	return NULL;
}

int suppressions_add(struct suppressions *suppressions, const char *text, const char *source)
{
	const char *path = add_source(suppressions, source);
	char *copy = strdup(text), *rest = copy, *line;
	int err = path && copy ? 0 : -ENOMEM;

	while (!err && (line = strsep(&rest, "\n")))
		if (add_line(suppressions, line, path) == -ENOMEM)
			err = -ENOMEM;
	free(copy);
	return err;
}

bool suppressions_get(const struct suppressions *suppressions, size_t i,
		      struct suppression *suppression)
{
	const struct pattern *pattern;

	if (i >= suppressions->nr)
		return false;
	pattern = &suppressions->all[i];
	*suppression = (struct suppression){pattern->text, pattern->source, pattern->stacks,
					    pattern->matched};
	return true;
}

/* Where the @len bytes at @part are first in @name, or NULL. */
static const char *find_part(const char *name, const char *part, size_t len)
{
	return len ? memmem(name, strlen(name), part, len) : name;
}

/* As LeakSanitizer does: behind a $ nothing counts, and one without anything before it matches no
 * name. */
static bool matches(const char *pattern, const char *name)
{
	bool fixed = *pattern == '^', star = false;

	if (!name || !*name)
		return false;
	pattern += fixed;
	for (;;) {
		size_t len = strcspn(pattern, "*$");
		bool last = pattern[len] == '$';

		/* what must be at the end is looked for there */
		if (last && !fixed) {
			size_t left = strlen(name);

			return (len || star) && left >= len &&
			       !memcmp(name + left - len, pattern, len);
		}
		if (fixed && strncmp(name, pattern, len) != 0)
			return false;
		if (!fixed && !(name = find_part(name, pattern, len)))
			return false;
		name += len;
		if (last)
			return !*name;
		pattern += len;
		if (!*pattern)
			return true;
		fixed = false;
		star = true;
		pattern++;
	}
}

bool suppressions_match(struct suppressions *suppressions, struct live_amount amount,
			const char *function, const char *file, const char *module)
{
	for (size_t i = 0; i < suppressions->nr; i++) {
		struct pattern *pattern = &suppressions->all[i];

		if (!matches(pattern->text, function) && !matches(pattern->text, file) &&
		    !matches(pattern->text, module))
			continue;
		pattern->stacks++;
		live_amount_add(&pattern->matched, amount);
		return true;
	}
	return false;
}

struct live_amount suppressions_sum(const struct suppressions *suppressions)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < suppressions->nr; i++)
		live_amount_add(&sum, suppressions->all[i].matched);
	return sum;
}

static void print_pattern(FILE *out, const struct pattern *pattern)
{
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];

	fprintf(out, "%12s%12s  ", size_cell(bytes, pattern->matched.bytes),
		text_number(blocks, pattern->matched.blocks));
	text_print(out, pattern->text);
	fputc('\n', out);
}

/* Those of one source are next to each other. */
void suppressions_print(const struct suppressions *suppressions, FILE *out)
{
	const struct pattern *last = NULL;

	for (size_t i = 0; i < suppressions->nr; i++) {
		const struct pattern *pattern = &suppressions->all[i];

		if (!pattern->stacks)
			continue;
		if (!last || last->source != pattern->source) {
			fputs("\nsuppressed", out);
			if (pattern->source)
				fputs(" by __lsan_default_suppressions() of ", out);
			text_print(out, pattern->source ? pattern->source : "");
			fputs(":\n", out);
		}
		print_pattern(out, pattern);
		last = pattern;
	}
}

void suppressions_free(struct suppressions *suppressions)
{
	if (!suppressions)
		return;
	for (size_t i = 0; i < suppressions->nr; i++)
		free(suppressions->all[i].text);
	for (size_t i = 0; i < suppressions->nr_sources; i++)
		free(suppressions->sources[i]);
	free(suppressions->sources);
	free(suppressions->all);
	free(suppressions);
}

static void warn_of_embedded(const char *path)
{
	char *shown = text_escape(path);

	log_warn("cannot read the result of __lsan_default_suppressions() of '%s' because it is "
		 "not a string literal: give it with --suppressions",
		 shown ? shown : "");
	free(shown);
}

/* Add the suppressions of the module with this path, a string of @len bytes with its NUL. */
static int add_embedded(struct suppressions **suppressions, const char *path, const char *text,
			size_t len)
{
	int err = 0;

	if (len > MAX_TEXT || !memchr(text, '\0', len))
		return 0; /* no recorder makes such a one */
	if (!*text) {
		warn_of_embedded(path);
		return 0;
	}
	if (!*suppressions)
		err = suppressions_new(suppressions);
	return err ? err : suppressions_add(*suppressions, text, path);
}

int embedded_suppressions_add(struct suppressions **suppressions, const struct replay *leaks)
{
	const struct trace_modules *images = leaks->images;
	int err = 0;

	for (uint32_t i = 0; i < images->nr && !err; i++) {
		size_t len;
		const char *text =
			dwunw_module_section(leaks->dw, images->all[i].module, SECTION, &len);

		if (text)
			err = add_embedded(suppressions, images->all[i].path, text, len);
	}
	return err;
}
