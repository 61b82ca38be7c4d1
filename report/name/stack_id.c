/* stack_id.c - see stack_id.h */
#include "report/name/stack_id.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/trace.h"
#include "report/base/text.h"

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* hash_bytes() is another one in each run. */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t nr)
{
	const unsigned char *at = bytes;

	while (nr--)
		hash = (hash ^ *at++) * FNV_PRIME;
	return hash;
}

/* What tells the module of @frame from others, behind its length. */
static uint64_t add_module(uint64_t hash, const struct symbols_source *source,
			   const struct dwunw_frame *frame)
{
	const struct mlk_id *id = trace_modules_id(source->images, frame->module);
	const char *code = symbols_code(source, frame);
	const char *name = code ? code : text_file_name(symbols_module_path(source, frame));
	unsigned char len;

	if (id && id->len > 1 && id->len <= MLK_MAX_ID && id->bytes[0] == MLK_ID_BUILD_ID) {
		len = id->len;
		hash = add_bytes(hash, &len, 1);
		return add_bytes(hash, id->bytes, len);
	}
	len = 0;
	hash = add_bytes(hash, &len, 1);
	return add_bytes(hash, name, strlen(name) + 1);
}

uint64_t stack_id(const struct symbols_source *source, const struct dwunw_frame *frames, size_t nr)
{
	uint64_t hash = FNV_BASIS;

	for (size_t i = 0; i < nr; i++) {
		unsigned char place[8] = {0};

		hash = add_module(hash, source, &frames[i]);
		for (size_t at = 0; at < 8 && frames[i].module != DWUNW_NO_MODULE; at++)
			place[at] = (unsigned char)(frames[i].addr >> (8 * at));
		hash = add_bytes(hash, place, sizeof(place));
	}
	return hash;
}

const char *stack_id_text(char buf[STACK_ID_MAX], uint64_t id)
{
	snprintf(buf, STACK_ID_MAX, "%016" PRIx64, id);
	return buf;
}

int stack_id_parse(const char *text, uint64_t *id)
{
	size_t len = strlen(text);

	if (!len || len >= STACK_ID_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return -EINVAL;
	*id = strtoull(text, NULL, 16);
	return 0;
}
