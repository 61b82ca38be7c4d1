/* code_read.c - see code_read.h */
#include "record/interpreter/code_read.h"

#include <stdlib.h>
#include <string.h>

#include "record/interpreter/python_layout.h"

#define PYTHON_ARG		   const struct target *t,
#define PYTHON_PASS		   t,
#define PYTHON_READ(to, addr, len) target_read_memory(t, (addr), (to), (len))
#define PYTHON_INLINE		   static inline

#include "bpf/frames_walk.h"

/* Append character @c to @to as UTF-8; what would move a cursor is a question mark.  Returns the
 * end. */
static char *put_character(char *to, uint32_t c)
{
	if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
	    c > 0x10ffff)
		c = '?';
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/* The text of @shape whose characters are at @from, as UTF-8; at most MLK_MAX_STRING bytes.  NULL:
 * no memory. */
static char *make_text(const struct python_text *shape, const uint8_t *from)
{
	char *text = malloc(MLK_MAX_STRING + 1), *to = text, *made;

	if (!text)
		return NULL;
	if (!shape->width)
		*to++ = '?';
	for (uint32_t i = 0; i < shape->len && to + 4 <= text + MLK_MAX_STRING; i++) {
		uint32_t c = 0;

		memcpy(&c, from + (size_t)i * shape->width, shape->width); /* little-endian */
		to = put_character(to, c);
	}
	*to = '\0';
	made = realloc(text, (size_t)(to - text) + 1);
	return made ? made : text;
}

/* The character that begins at @from, before @end, in UTF-8; *@len: its bytes.  What is none is a
 * question mark of one byte. */
static uint32_t next_character(const uint8_t *from, const uint8_t *end, size_t *len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c = *from;

	*len = c < 0x80 ? 1 : c >= 0xc0 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 4;
	if (*len == 1)
		return c;
	if (c >= 0xc0 && c < 0xf8 && (size_t)(end - from) >= *len) {
		size_t i = 1;

		for (c &= 0x7fu >> *len; i < *len && (from[i] & 0xc0) == 0x80; i++)
			c = c << 6 | (from[i] & 0x3f);
		if (i == *len && c >= least[*len])
			return c;
	}
	*len = 1;
	return '?';
}

/* Append the text of @len bytes at @from, up to a byte that is 0, to @to, with room for @room
 * bytes. Returns the end. */
static char *put_bytes(char *to, size_t room, const uint8_t *from, uint32_t len)
{
	const uint8_t *end = from + len;
	const char *last = to + room;

	while (from < end && *from && to + 4 <= last) {
		size_t bytes;

		to = put_character(to, next_character(from, end, &bytes));
		from += bytes;
	}
	return to;
}

/* The name of a function of PHP or Ruby, with its class; a file's own code in PHP has none.  NULL:
 * no memory. */
static char *make_plain_name(const struct code_parts *parts)
{
	char *text = malloc(2 * MLK_MAX_STRING), *to = text, *made;

	if (!text)
		return NULL;
	if (!parts->name.len) {
		strcpy(text, "{main}");
		to += strlen(text);
	} else if (parts->lines_len) {
		to = put_bytes(to, MLK_MAX_STRING / 2, parts->lines, parts->lines_len);
		to = stpcpy(to, "::");
	}
	to = put_bytes(to, MLK_MAX_STRING / 2 - 8, parts->name_bytes, parts->name.len);
	*to = '\0';
	made = realloc(text, (size_t)(to - text) + 1);
	return made ? made : text;
}

/* The file of one; NULL: no memory. */
static char *make_plain_file(const struct code_parts *parts)
{
	char *text = malloc(MLK_MAX_STRING + 1);

	if (text)
		*put_bytes(text, MLK_MAX_STRING, parts->file_bytes, parts->file.len) = '\0';
	return text;
}

static bool is_whole(const struct mlk_code *code)
{
	if (code->name && code->file && (code->lines || !code->lines_len))
		return true;
	free((void *)(uintptr_t)code->name);
	free((void *)(uintptr_t)code->file);
	free((void *)(uintptr_t)code->lines);
	return false;
}

/* Is @shape one of a text of at most @most characters? */
static bool is_text(const struct python_text *shape, uint32_t most)
{
	return shape->width <= 4 && shape->width != 3 && shape->len <= most &&
	       (shape->width || !shape->len);
}

static uint8_t *copy_bytes(const uint8_t *from, uint32_t len)
{
	uint8_t *to = len ? malloc(len) : NULL;

	if (to)
		memcpy(to, from, len);
	return to;
}

bool code_find_parts(struct code_parts *parts, const struct preload_code *from, uint32_t len)
{
	const uint8_t *at = (const uint8_t *)(from + 1);
	const bool no_lines = from->lines_len == PYTHON_NO_LINES;
	uint32_t name_len, file_len;

	*parts = (struct code_parts){.version = from->version,
				     .first_line = (uint32_t)(from->record.size >> 32),
				     .lines_len = no_lines ? 0 : from->lines_len,
				     .no_lines = no_lines,
				     .name = from->name,
				     .file = from->file};
	if (!is_text(&parts->name, PYTHON_NAME_MAX) || !is_text(&parts->file, PYTHON_FILE_MAX) ||
	    parts->lines_len > PYTHON_LINES_MAX)
		return false;
	name_len = python_padded(parts->name.len * parts->name.width);
	file_len = python_padded(parts->file.len * parts->file.width);
	parts->name_bytes = at;
	parts->file_bytes = at + name_len;
	parts->lines = at + name_len + file_len;
	return len == sizeof(*from) + name_len + file_len + python_padded(parts->lines_len);
}

bool code_take(struct mlk_code *code, const struct code_parts *parts)
{
	const struct python_layout *layout = python_layout(parts->version);

	if (parts->version & (PYTHON_PHP_VERSION | PYTHON_RUBY_VERSION)) {
		*code = (struct mlk_code){.language = parts->version & PYTHON_PHP_VERSION
							      ? MLK_LANGUAGE_PHP
							      : MLK_LANGUAGE_RUBY,
					  .first_line = parts->first_line,
					  .line_table = MLK_LINES_PLACE,
					  .name = make_plain_name(parts),
					  .file = make_plain_file(parts)};
		return is_whole(code);
	}
	if (!layout)
		return false;
	*code = (struct mlk_code){.language = MLK_LANGUAGE_PYTHON,
				  .first_line = parts->first_line,
				  .line_table = parts->no_lines ? MLK_LINES_NONE : layout->lines,
				  .lines_len = parts->lines_len,
				  .name = make_text(&parts->name, parts->name_bytes),
				  .file = make_text(&parts->file, parts->file_bytes),
				  .lines = copy_bytes(parts->lines, parts->lines_len)};
	return is_whole(code);
}

/* Read the string at @addr of @t.  NULL: it cannot be read. */
static char *read_text(const struct target *t, const struct event_python *py, uint64_t addr,
		       uint32_t most)
{
	struct python_text shape;
	uint8_t *characters;
	uint64_t words[3]; /* length, hash, state */
	char *text = NULL;
	uint32_t state;

	if (!python_is_address(addr) || target_read_memory(t, addr + 16, words, sizeof(words)))
		return NULL;
	state = python_text_state(py, words[2]);
	shape.width = state & PYTHON_COMPACT ? state & PYTHON_KIND : 0;
	shape.len = words[0] < most ? (uint32_t)words[0] : most;
	if (!shape.width || !is_text(&shape, most))
		shape = (struct python_text){0};
	characters = malloc((size_t)shape.len * shape.width + 1);
	if (characters &&
	    (!shape.len ||
	     !target_read_memory(t, addr + (state & PYTHON_ASCII ? py->text : py->wide_text),
				 characters, (size_t)shape.len * shape.width)))
		text = make_text(&shape, characters);
	free(characters);
	return text;
}

/* Copy @len bytes of memory, in pieces that the helper process may read. */
static int read_pieces(const struct target *t, uint64_t addr, uint8_t *to, size_t len)
{
	int err = 0;

	for (size_t done = 0, piece; done < len && !err; done += piece) {
		piece = len - done < HELPER_MAX_READ ? len - done : HELPER_MAX_READ;
		err = target_read_memory(t, addr + done, to + done, piece);
	}
	return err;
}

/* The lines of @code, whose table is at @addr, where they can be read. */
static void read_lines(struct mlk_code *code, const struct target *t, uint64_t addr,
		       enum mlk_line_table kind)
{
	uint64_t bytes = 0;
	uint8_t *lines;

	if (target_read_memory(t, addr + 16, &bytes, sizeof(bytes)) || bytes > PYTHON_LINES_MAX)
		return;
	if (!bytes) {
		code->line_table = kind;
		return;
	}
	lines = malloc(bytes);
	if (!lines || read_pieces(t, addr + 32, lines, bytes)) {
		free(lines);
		return;
	}
	code->lines = lines;
	code->lines_len = (uint32_t)bytes;
	code->line_table = kind;
}

/* Has what is at @address that digest? */
static bool is_same(const struct target *t, struct python_walk *w, const struct event_python *py,
		    uint64_t address, uint32_t digest)
{
	uint32_t now = 0;

	w->file = 0;
	return !frames_digest(t, w, py, address, &now) && now == digest;
}

/* Read @text to @to, at most @most bytes.  Returns how many; 0 if it cannot be read. */
static uint32_t read_plain_text(const struct target *t, const struct plain_text *text, uint8_t *to,
				uint32_t most)
{
	uint32_t len = text->len < most ? (uint32_t)text->len : most;

	return len && target_read_memory(t, text->addr, to, len) ? 0 : len;
}

/* The same of PHP and Ruby. */
static bool read_plain_code(struct mlk_code *code, const struct target *t,
			    const struct event_python *py, uint64_t address, uint32_t digest)
{
	uint8_t name[PYTHON_NAME_MAX], file[PYTHON_FILE_MAX], class[PYTHON_NAME_MAX];
	struct code_parts parts = {.version = py->version,
				   .name.width = 1,
				   .file.width = 1,
				   .name_bytes = name,
				   .file_bytes = file,
				   .lines = class};
	struct plain_code found;
	struct python_walk w;

	if (!is_same(t, &w, py, address, digest) || frames_find_parts(t, &w, py, address, &found))
		return false;
	parts.first_line = found.first_line;
	parts.name.len = read_plain_text(t, &found.name, name, sizeof(name));
	parts.file.len = read_plain_text(t, &found.file, file, sizeof(file));
	parts.lines_len = read_plain_text(t, &found.class, class, sizeof(class));
	return is_same(t, &w, py, address, digest) && code_take(code, &parts);
}

bool code_read(struct mlk_code *code, const struct target *t, const struct event_python *py,
	       uint64_t address, uint32_t digest)
{
	const struct python_layout *layout = python_layout(py->version);
	struct python_walk w, after;

	*code = (struct mlk_code){.language = MLK_LANGUAGE_PYTHON};
	if (frames_are_plain(py))
		return read_plain_code(code, t, py, address, digest);
	if (!layout || !is_same(t, &w, py, address, digest))
		return false;
	if (target_read_memory(t, address + py->first_line, &code->first_line,
			       sizeof(code->first_line)))
		return false;
	code->name = read_text(t, py, w.code[py->code_name], PYTHON_NAME_MAX);
	code->file = read_text(t, py, w.code[py->code_file], PYTHON_FILE_MAX);
	read_lines(code, t, w.code[py->code_lines], layout->lines);
	if (!is_whole(code))
		return false;
	if (is_same(t, &after, py, address, digest))
		return true;
	free((void *)(uintptr_t)code->name);
	free((void *)(uintptr_t)code->file);
	free((void *)(uintptr_t)code->lines);
	return false;
}
