/* short_name.c - see short_name.h */
#include "report/name/short_name.h"

#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/name/name_brackets.h"

#define MAX_ARGS   8  /* of a template: those of the table have fewer */
#define LEAST_ROOM 20 /* columns of a name on a narrow terminal */
#define MORE	   "..."

/* Templates of namespace std, and which of their last arguments have defaults. */
static const struct std_template {
	const char *name;
	size_t first; /* the first argument that has one */
	const char *defaults[3];
} templates[] = {
	{"basic_filebuf", 1, {"char_traits"}},
	{"basic_fstream", 1, {"char_traits"}},
	{"basic_ifstream", 1, {"char_traits"}},
	{"basic_ios", 1, {"char_traits"}},
	{"basic_iostream", 1, {"char_traits"}},
	{"basic_istream", 1, {"char_traits"}},
	{"basic_istringstream", 1, {"char_traits", "allocator"}},
	{"basic_ofstream", 1, {"char_traits"}},
	{"basic_ostream", 1, {"char_traits"}},
	{"basic_ostringstream", 1, {"char_traits", "allocator"}},
	{"basic_regex", 1, {"regex_traits"}},
	{"basic_streambuf", 1, {"char_traits"}},
	{"basic_string", 1, {"char_traits", "allocator"}},
	{"basic_string_view", 1, {"char_traits"}},
	{"basic_stringbuf", 1, {"char_traits", "allocator"}},
	{"basic_stringstream", 1, {"char_traits", "allocator"}},
	{"deque", 1, {"allocator"}},
	{"forward_list", 1, {"allocator"}},
	{"istreambuf_iterator", 1, {"char_traits"}},
	{"list", 1, {"allocator"}},
	{"map", 2, {"less", "allocator"}},
	{"multimap", 2, {"less", "allocator"}},
	{"multiset", 1, {"less", "allocator"}},
	{"ostreambuf_iterator", 1, {"char_traits"}},
	{"priority_queue", 1, {"vector", "less"}},
	{"queue", 1, {"deque"}},
	{"set", 1, {"less", "allocator"}},
	{"stack", 1, {"deque"}},
	{"unique_ptr", 1, {"default_delete"}},
	{"unordered_map", 2, {"hash", "equal_to", "allocator"}},
	{"unordered_multimap", 2, {"hash", "equal_to", "allocator"}},
	{"unordered_multiset", 1, {"hash", "equal_to", "allocator"}},
	{"unordered_set", 1, {"hash", "equal_to", "allocator"}},
	{"vector", 1, {"allocator"}},
	/* what these are made of: they have no defaults, but nothing else is ever there */
	{"_Deque_base", 1, {"allocator"}},
	{"_Fwd_list_base", 1, {"allocator"}},
	{"_List_base", 1, {"allocator"}},
	{"_Rb_tree", 3, {"less", "allocator"}},
	{"_Vector_base", 1, {"allocator"}},
};

/* What std::basic_NAME<CHARACTER> is called: std::PREFIX NAME. */
static const struct {
	const char *character, *prefix;
} prefixes[] = {
	{"char", ""}, {"wchar_t", "w"}, {"char8_t", "u8"}, {"char16_t", "u16"}, {"char32_t", "u32"},
};

/* Namespaces of the standard libraries that no source names. */
static const char *const inline_namespaces[] = {"__cxx11", "__1", "__ndk1", "__Cr", "_V2", "__8"};

static bool disabled;

void short_names_disable(void)
{
	disabled = true;
}

/* Template arguments that are being copied: places in the copy. */
struct level {
	size_t name;	       /* where the template's qualified name begins */
	size_t open;	       /* its "<" */
	size_t args[MAX_ARGS]; /* where each begins */
	size_t nr;	       /* there may be more than have room */
};

struct copy {
	char *text;
	size_t len;
	struct level levels[NAME_MAX_DEPTH];
	size_t depth;
};

/* A part of a text. */
struct part {
	const char *at;
	size_t len;
};

static bool part_is(struct part part, const char *text)
{
	return part.len == strlen(text) && !memcmp(part.at, text, part.len);
}

/* If @part begins with @text, step over that. */
static bool skip_text(struct part *part, const char *text)
{
	size_t len = strlen(text);

	if (part->len < len || memcmp(part->at, text, len) != 0)
		return false;
	part->at += len;
	part->len -= len;
	return true;
}

/* Where the qualified name ends that the copy ends with. */
static size_t name_start(const struct copy *copy)
{
	size_t at = copy->len;

	while (at && (name_is_identifier(copy->text[at - 1]) || copy->text[at - 1] == ':'))
		at--;
	return at;
}

/* Argument @i of @level, whose last one ends where the copy does. */
static struct part argument(const struct copy *copy, const struct level *level, size_t i)
{
	size_t from = level->args[i];
	size_t to = i + 1 < level->nr ? level->args[i + 1] - 2 : copy->len; /* ", " */

	return (struct part){copy->text + from, to > from ? to - from : 0};
}

/* Is @arg "std::WHAT<X>", X being the template's first argument @first, or what a map's allocator
 * has, a pair? */
static bool is_default(struct part arg, const char *what, struct part first)
{
	if (!skip_text(&arg, "std::") || !skip_text(&arg, what) || !skip_text(&arg, "<") ||
	    !arg.len || arg.at[arg.len - 1] != '>')
		return false;
	arg.len--;
	if (arg.len == first.len && !memcmp(arg.at, first.at, arg.len))
		return true;
	return !strcmp(what, "allocator") && skip_text(&arg, "std::pair<") && arg.len > first.len &&
	       !memcmp(arg.at, first.at, first.len);
}

/* Drop the last arguments of @level as long as they are defaults of @t. */
static void drop_defaults(struct copy *copy, struct level *level, const struct std_template *t)
{
	while (level->nr > t->first) {
		size_t i = level->nr - 1;

		if (i - t->first >= sizeof(t->defaults) / sizeof(*t->defaults) ||
		    !t->defaults[i - t->first] ||
		    !is_default(argument(copy, level, i), t->defaults[i - t->first],
				argument(copy, level, 0)) ||
		    copy->text[level->args[i] - 1] != ' ')
			return;
		copy->len = level->args[i] - 2;
		level->nr--;
	}
}

/* If the template is std::basic_NAME of a character, make it std::NAME.  Returns whether it was. */
static bool use_alias(struct copy *copy, const struct level *level)
{
	struct part name = {copy->text + level->name, level->open - level->name};
	struct part arg = argument(copy, level, 0);

	if (level->nr != 1 || !skip_text(&name, "std::basic_"))
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		char *to = copy->text + level->name + strlen("std::");
		size_t len = strlen(prefixes[i].prefix);

		if (!part_is(arg, prefixes[i].character))
			continue;
		/* "basic_" is longer than all of them */
		memcpy(to, prefixes[i].prefix, len);
		memmove(to + len, name.at, name.len);
		copy->len = (size_t)(to + len + name.len - copy->text);
		return true;
	}
	return false;
}

static const struct std_template *template_of(struct part name)
{
	if (!skip_text(&name, "std::"))
		return NULL;
	for (size_t i = 0; i < sizeof(templates) / sizeof(*templates); i++)
		if (part_is(name, templates[i].name))
			return &templates[i];
	return NULL;
}

/* The ">" of the innermost level is next. */
static void close_level(struct copy *copy)
{
	struct level *level = &copy->levels[--copy->depth];
	const struct std_template *t =
		template_of((struct part){copy->text + level->name, level->open - level->name});

	if (copy->len && copy->text[copy->len - 1] == ' ')
		copy->len--;
	if (t && level->nr <= MAX_ARGS) {
		drop_defaults(copy, level, t);
		if (use_alias(copy, level))
			return;
	}
	copy->text[copy->len++] = '>';
}

/* How many characters at @at are "::" and an inline namespace behind std, before another "::". */
static size_t inline_namespace(const struct copy *copy, const char *at)
{
	struct part name;
	size_t len = 0;

	if (at[0] != ':' || at[1] != ':' || at[2] != '_')
		return 0;
	for (size_t i = 0; !len && i < sizeof(inline_namespaces) / sizeof(*inline_namespaces);
	     i++) {
		len = strlen(inline_namespaces[i]);
		if (strncmp(at + 2, inline_namespaces[i], len) != 0 ||
		    strncmp(at + 2 + len, "::", 2) != 0)
			len = 0;
	}
	name.at = copy->text + name_start(copy);
	name.len = (size_t)(copy->text + copy->len - name.at);
	return len && skip_text(&name, "std") && (!name.len || name.at[0] == ':') ? 2 + len : 0;
}

static void copy_character(struct copy *copy, char c, enum name_mark mark)
{
	struct level *level = copy->depth ? &copy->levels[copy->depth - 1] : NULL;

	if (mark == MARK_CLOSE) {
		close_level(copy);
		return;
	}
	if (mark == MARK_OPEN) {
		level = &copy->levels[copy->depth++];
		*level = (struct level){.name = name_start(copy), .open = copy->len, .nr = 1};
		level->args[0] = copy->len + 1;
	}
	copy->text[copy->len++] = c;
	if (mark == MARK_COMMA && level->nr++ < MAX_ARGS)
		level->args[level->nr - 1] = copy->len + 1; /* a space follows */
}

/* Copy @name, whose brackets are @marks, to @text, which has as much room. */
static void shorten(const char *name, const unsigned char *marks, char *text)
{
	struct copy copy = {.text = text};

	for (size_t i = 0; name[i];) {
		size_t skipped = inline_namespace(&copy, name + i);

		if (!skipped)
			copy_character(&copy, name[i], marks[i]);
		i += skipped ? skipped : 1;
	}
	text[copy.len] = '\0';
}

char *short_name(const char *name)
{
	size_t len = strlen(name);
	unsigned char *marks;
	char *text = strdup(name);

	if (!text || disabled || (!strchr(name, '<') && !strstr(name, "::_")))
		return text;
	marks = malloc(len + 1);
	if (marks && name_brackets(name, len, marks))
		shorten(name, marks, text);
	if (!marks) {
		free(text);
		return NULL;
	}
	free(marks);
	return text;
}

/* How deep the template arguments of a name go. */
static size_t depth_of(const unsigned char *marks, size_t len)
{
	size_t depth = 0, most = 0;

	for (size_t i = 0; i < len; i++) {
		depth += marks[i] == MARK_OPEN;
		depth -= marks[i] == MARK_CLOSE;
		most = depth > most ? depth : most;
	}
	return most;
}

/* Copy @name to @text with MORE for the template arguments at @depth, unless they are as short. */
static void hide_arguments(const char *name, const unsigned char *marks, size_t depth, char *text)
{
	size_t at = 0, to = 0, open = 0;

	for (size_t i = 0; name[i]; i++) {
		if (marks[i] == MARK_CLOSE && at-- == depth && to - open > strlen(MORE)) {
			memcpy(text + open, MORE, strlen(MORE));
			to = open + strlen(MORE);
		}
		text[to++] = name[i];
		if (marks[i] == MARK_OPEN && ++at == depth)
			open = to;
	}
	text[to] = '\0';
}

/* Put MORE in place of the parameters of @text: the last parentheses that follow a name. */
static void hide_parameters(char *text)
{
	size_t depth = 0, close = 0;

	for (size_t i = strlen(text); i-- > 0;) {
		if (text[i] == ')' && !depth++)
			close = i;
		if (text[i] != '(' || !depth || --depth)
			continue;
		if (!i || text[i - 1] == ' ' || text[i - 1] == ':' || text[i - 1] == '<')
			continue;
		if (close - i - 1 > strlen(MORE)) {
			memmove(text + i + 1 + strlen(MORE), text + close,
				strlen(text + close) + 1);
			memcpy(text + i + 1, MORE, strlen(MORE));
		}
		return;
	}
}

/* Put MORE in place of the beginning of @text, which has more than @columns. */
static void hide_beginning(char *text, size_t columns)
{
	size_t more = text_columns(text) - columns + strlen(MORE);
	char *at = text;

	if (columns <= strlen(MORE))
		return;
	while (more--)
		for (at++; (*at & 0xc0) == 0x80;)
			at++;
	memmove(text + strlen(MORE), at, strlen(at) + 1);
	memcpy(text, MORE, strlen(MORE));
}

/* Hide template arguments of @text until it has at most @columns.  False: no memory. */
static bool fit_arguments(char *text, size_t columns)
{
	size_t len = strlen(text);
	unsigned char *marks = malloc(len + 1);
	char *shorter = malloc(len + 1);
	size_t depth = marks && name_brackets(text, len, marks) ? depth_of(marks, len) : 0;
	bool done = marks && shorter;

	for (; done && depth && text_columns(text) > columns; depth--) {
		hide_arguments(text, marks, depth, shorter);
		memcpy(text, shorter, strlen(shorter) + 1);
		/* what is left has the brackets that it had */
		if (!name_brackets(text, strlen(text), marks))
			break;
	}
	free(marks);
	free(shorter);
	return done;
}

char *name_to_fit(const char *name, size_t columns)
{
	char *text = short_name(name);

	if (!text || disabled || !columns || text_columns(text) <= columns)
		return text;
	if (!fit_arguments(text, columns)) {
		free(text);
		return NULL;
	}
	if (text_columns(text) > columns)
		hide_parameters(text);
	if (text_columns(text) > columns)
		hide_beginning(text, columns);
	return text;
}

size_t name_room(size_t columns, size_t beside)
{
	if (!columns)
		return 0;
	return columns > beside + LEAST_ROOM ? columns - beside : LEAST_ROOM;
}

void name_print(FILE *out, const char *name, size_t columns)
{
	char *text = name_to_fit(name, columns);

	fputs(text ? text : name, out);
	free(text);
}
