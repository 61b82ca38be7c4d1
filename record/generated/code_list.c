/* code_list.c - see code_list.h */
#include "record/generated/code_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "format/trace.h"

/* A number in base 16 at *@at, which goes behind it and the space that must follow. */
static bool take_number(const char **at, uint64_t *number)
{
	const char *from = *at;

	*number = 0;
	if (from[0] == '0' && from[1] == 'x')
		from += 2;
	for (*at = from; isxdigit((unsigned char)**at) && *at - from < 16; ++*at)
		*number = *number << 4 |
			  (uint64_t)(**at <= '9' ? **at - '0' : (**at | 32) - 'a' + 10);
	return *at > from && *(*at)++ == ' ';
}

/* Is what follows the space at @text where a function is: a path, or FILE:LINE? */
static bool is_place(const char *text)
{
	const char *colon = strrchr(text, ':');

	return strchr(text, '/') || (colon && isdigit((unsigned char)colon[1]));
}

/* End @name before the place of its function. */
static void drop_file(char *name)
{
	for (char *space = strchr(name, ' '); space; space = strchr(space + 1, ' ')) {
		if (!is_place(space))
			continue;
		*space = '\0';
		return;
	}
	if (name[0] == '/' || !strncmp(name, "file:", 5))
		memcpy(name, "?", 2); /* nothing but a path */
}

/* Append what @line says, whose end is a NUL.  Returns 0 or -ENOMEM. */
static int take_line(struct code_list *list, char *line, bool no_files)
{
	struct mlk_code_name name = {0};
	const char *at = line;
	char *text;

	if (!take_number(&at, &name.start) || !take_number(&at, &name.len) || !*at || !name.len ||
	    name.len > UINT64_MAX - name.start) {
		list->strange += strlen(line) + 1;
		return 0;
	}
	if (grow_array(&list->v, list->nr, &list->room, sizeof(*list->v)))
		return -ENOMEM;
	text = line + (at - line);
	if (strlen(text) > MLK_MAX_STRING)
		text[MLK_MAX_STRING] = '\0';
	if (no_files)
		drop_file(text);
	name.name = text;
	list->v[list->nr++] = name;
	return 0;
}

int code_list_read(struct code_list *list, char *text, size_t len, bool no_files, size_t *taken)
{
	char *at = text, *end;
	int err = 0;

	while (!err && (end = memchr(at, '\n', len - (size_t)(at - text))) != NULL) {
		*end = '\0';
		err = take_line(list, at, no_files);
		at = end + 1;
	}
	*taken = (size_t)(at - text);
	return err;
}

void code_list_release(struct code_list *list)
{
	free(list->v);
	*list = (struct code_list){0};
}
