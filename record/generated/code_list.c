/* code_list.c - see code_list.h */
#include "record/generated/code_list.h"

#include <ctype.h>
#include <errno.h>
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

const char *code_list_place(const char *name)
{
	const char *space = strchr(name, ' '), *slash = strrchr(name, '/');
	const char *colon = strrchr(name, ':');

	if (!space)
		return NULL;
	return slash > space || (colon > space && isdigit((unsigned char)colon[1])) ? space : NULL;
}

/* End @name before the place of its function. */
static void drop_file(char *name)
{
	const char *place = code_list_place(name);

	if (place) {
		name[place - name] = '\0';
		return;
	}
	if (name[0] == '/' || !strncmp(name, "file:", 5))
		memcpy(name, "?", 2); /* nothing but a path */
}

int code_list_add(struct code_list *list, uint64_t start, uint64_t len, char *name, bool no_files)
{
	if (grow_array(&list->v, list->nr, &list->room, sizeof(*list->v)))
		return -ENOMEM;
	if (no_files)
		drop_file(name);
	list->v[list->nr++] = (struct mlk_code_name){.start = start, .len = len, .name = name};
	return 0;
}

/* Append what @line says, whose end is a NUL.  Returns 0 or -ENOMEM. */
static int take_line(struct code_list *list, char *line, bool no_files)
{
	uint64_t start, bytes;
	const char *at = line;
	char *name;

	if (!take_number(&at, &start) || !take_number(&at, &bytes) || !*at || !bytes ||
	    bytes > UINT64_MAX - start) {
		list->strange += strlen(line) + 1;
		return 0;
	}
	name = line + (at - line);
	if (strlen(name) > MLK_MAX_STRING)
		name[MLK_MAX_STRING] = '\0';
	return code_list_add(list, start, bytes, name, no_files);
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
