/* name_brackets.c - see name_brackets.h */
#include "report/name/name_brackets.h"

#include <string.h>

#define OPERATOR "operator"

bool name_is_identifier(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (c & 0x80);
}

/* How many characters an operator's symbol has that is at @at, behind the word. */
static size_t symbol_length(const char *name, size_t at)
{
	/* those that begin with another one come before it */
	static const char *const symbols[] = {
		"<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "==", "!=", "+=", "-=",
		"*=",  "/=",  "%=",  "^=",  "&=", "|=", "&&", "||", "++", "--", "()", "[]", "<",
		">",   "+",   "-",   "*",   "/",  "%",	"^",  "&",  "|",  "~",	"!",  "=",  ",",
	};
	size_t len = strlen(OPERATOR);

	if (at < len || memcmp(name + at - len, OPERATOR, len) != 0 ||
	    (at > len && name_is_identifier(name[at - len - 1])))
		return 0;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		if (!strncmp(name + at, symbols[i], strlen(symbols[i])))
			return strlen(symbols[i]);
	return 0;
}

/* The bracket that @c closes, or 0. */
static char opener_of(char c)
{
	switch (c) {
	case ')':
		return '(';
	case ']':
		return '[';
	case '}':
		return '{';
	default:
		return 0;
	}
}

struct brackets {
	char open[NAME_MAX_DEPTH];
	size_t depth;
	bool symbol; /* an operator's symbol came last, and perhaps a space */
};

static bool push_bracket(struct brackets *b, char c)
{
	if (b->depth == NAME_MAX_DEPTH)
		return false;
	b->open[b->depth++] = c;
	return true;
}

static char top_bracket(const struct brackets *b)
{
	return b->depth ? b->open[b->depth - 1] : 0;
}

/* Does "<" at @at begin template arguments?  At the beginning of a name or of an argument it is
 * Rust's <T as Trait>. */
static bool opens(const struct brackets *b, const char *name, size_t at)
{
	return !at || b->symbol || name_is_identifier(name[at - 1]) ||
	       (at > 1 && name[at - 1] == ':' && name[at - 2] == ':') ||
	       (top_bracket(b) == '<' && strchr("<, &*", name[at - 1]));
}

/* Mark the character at @at.  False: its bracket does not match. */
static bool mark_character(struct brackets *b, const char *name, size_t at, unsigned char *mark)
{
	char c = name[at];

	if (strchr("([{", c))
		return push_bracket(b, c);
	if (opener_of(c))
		return top_bracket(b) == opener_of(c) && b->depth--;
	if (c == '<' && opens(b, name, at)) {
		*mark = MARK_OPEN;
		return push_bracket(b, c);
	}
	if (c == '>' && top_bracket(b) == '<' && name[at - 1] != '-') {
		*mark = MARK_CLOSE;
		b->depth--;
	} else if (c == ',' && top_bracket(b) == '<') {
		*mark = MARK_COMMA;
	}
	return true;
}

bool name_brackets(const char *name, size_t len, unsigned char *marks)
{
	struct brackets b = {.depth = 0};

	memset(marks, MARK_PLAIN, len);
	for (size_t at = 0; at < len; at++) {
		size_t symbol = symbol_length(name, at);

		if (symbol) {
			at += symbol - 1;
			b.symbol = true;
			continue;
		}
		if (!mark_character(&b, name, at, &marks[at]))
			return false;
		b.symbol = b.symbol && name[at] == ' ';
	}
	return !b.depth;
}
