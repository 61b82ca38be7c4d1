/* code_name.c - see code_name.h */
#include "report/name/code_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What V8 puts before names, and behind it a mark that tells how the code was compiled. */
static const char *const kinds[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};

#define MARKS	"*~^+"
#define BUILTIN "Builtin:"

/* The part of @text behind the kind and the mark of a function of V8; NULL: it is none. */
static const char *skip_kind(const char *text)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (!strncmp(text, kinds[i], len))
			return text + len + (text[len] && strchr(MARKS, text[len]) != NULL);
	}
	return NULL;
}

/* End @text before ":NUMBER", and give the number.  False: it does not end so. */
static bool cut_number(char *text, uint32_t *number)
{
	char *colon = strrchr(text, ':');

	if (!colon || !isdigit((unsigned char)colon[1]) ||
	    colon[1 + strspn(colon + 1, "0123456789")])
		return false;
	*number = (uint32_t)strtoul(colon + 1, NULL, 10);
	*colon = '\0';
	return true;
}

/* Take FILE:LINE:COLUMN or FILE apart, behind a space of @text. */
static int parse_place(struct code_name *name, char *place)
{
	uint32_t column;

	if (!*place)
		return 0;
	if (cut_number(place, &column) && !cut_number(place, &name->line))
		name->line = column;
	if (!strncmp(place, "file://", 7))
		place += 7;
	name->file = strdup(place);
	return name->file ? 0 : -ENOMEM;
}

/* NAME PLACE of V8; the name has no space unless it is that of a getter or setter. */
static int parse_v8(struct code_name *name, const char *text)
{
	char *copy = strdup(text), *space;
	int err = copy ? 0 : -ENOMEM;

	if (err)
		return err;
	space = strchr(copy, ' ');
	if (space && (!strncmp(copy, "get ", 4) || !strncmp(copy, "set ", 4)))
		space = strchr(copy + 4, ' ');
	if (space) {
		*space = '\0';
		err = parse_place(name, space + 1);
	}
	if (!err)
		name->function = strdup(copy[0] ? copy : "(anonymous)");
	free(copy);
	return name->function ? err : -ENOMEM;
}

/* Of "Lorg/x/Server;::handle", as jcmd writes it, and "Lorg/x/Server;handle(I)V", as HotSpot's
 * agent for perf does, where the name begins; NULL: @text is neither. */
static const char *java_name(const char *text)
{
	const char *end = text[0] == 'L' ? strchr(text, ';') : NULL;

	if (!end)
		return NULL;
	if (!strncmp(end, ";::", 3))
		return end + 3;
	return strchr(end, '(') && strcspn(end, " ") > strcspn(end, ")") ? end + 1 : NULL;
}

/* The same as org.x.Server.handle; @name is where its name begins in @text. */
static int parse_java(struct code_name *to, const char *text, const char *name)
{
	const char *end = strchr(text, ';');

	if (asprintf(&to->function, "%.*s.%.*s", (int)(end - text - 1), text + 1,
		     (int)strcspn(name, "("), name) < 0) {
		to->function = NULL;
		return -ENOMEM;
	}
	for (char *at = to->function; at < to->function + (end - text - 1); at++)
		if (*at == '/')
			*at = '.';
	return 0;
}

/* "void org.x.Server.handle(int)" without the type, which is no part of any other name. */
static const char *skip_type(const char *text)
{
	const char *open = strchr(text, '('), *at = open;

	if (!open || text[strlen(text) - 1] != ')')
		return text;
	while (at > text && at[-1] != ' ')
		at--;
	return at < open && memchr(at, '.', (size_t)(open - at)) ? at : text;
}

/* As it is called in the file of the program. */
static char *builtin_name(const char *name)
{
	char *text;

	return asprintf(&text, "Builtins_%s", name) < 0 ? NULL : text;
}

/* Any other name, @text, which is changed: "NAME FILE:LINE", or a name alone. */
static int parse_other(struct code_name *name, char *text)
{
	const char *colon = strrchr(text, ':'), *java;
	char *space = strrchr(text, ' ');
	int err = 0;

	if (space > text && colon > space + 1 && isdigit((unsigned char)colon[1]) &&
	    !colon[1 + strspn(colon + 1, "0123456789")]) {
		*space = '\0';
		err = parse_place(name, space + 1);
	}
	if (err)
		return err;
	java = java_name(text);
	if (java)
		return parse_java(name, text, java);
	name->function = strdup(skip_type(text));
	return name->function ? 0 : -ENOMEM;
}

int code_name_parse(struct code_name *name, const char *text)
{
	const char *of_v8 = skip_kind(text);
	char *copy = NULL;
	int err = 0;

	*name = (struct code_name){0};
	if (of_v8) {
		err = parse_v8(name, of_v8);
	} else if (!strncmp(text, BUILTIN, strlen(BUILTIN))) {
		name->function = builtin_name(text + strlen(BUILTIN));
	} else {
		copy = strdup(text);
		err = copy ? parse_other(name, copy) : -ENOMEM;
	}
	free(copy);
	if (!err && name->function)
		return 0;
	free(name->function);
	free(name->file);
	*name = (struct code_name){0};
	return -ENOMEM;
}
