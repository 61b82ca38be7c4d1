/* lsan_suppressions.c - see lsan_suppressions.h */
#include "record/module/lsan_suppressions.h"

#include <stdlib.h>
#include <string.h>

#include "record/module/elffile.h"

#define CODE_MAX 64 /* bytes of the function that are examined */

/* Instructions around the one that loads the address. */
static const struct pattern {
	uint8_t len;
	uint8_t bytes[4];
} before[] =
	{
		{4, {0xf3, 0x0f, 0x1e, 0xfa}}, /* endbr64 */
		{1, {0x55}},		       /* push %rbp */
		{3, {0x48, 0x89, 0xe5}},       /* mov %rsp,%rbp */
},
  after[] = {
	  {1, {0x5d}}, /* pop %rbp */
	  {1, {0xc9}}, /* leave */
};

/* Step over those of the @nr @patterns that come next. */
static size_t skip(const uint8_t *code, size_t len, size_t at, const struct pattern *patterns,
		   size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (patterns[i].len <= len - at &&
		    !memcmp(code + at, patterns[i].bytes, patterns[i].len))
			at += patterns[i].len;
	return at;
}

static uint64_t little_endian(const uint8_t *bytes, size_t len)
{
	uint64_t value = 0;

	while (len--)
		value = value << 8 | bytes[len];
	return value;
}

/* What the instruction at @code loads into rax.  Returns its length, or 0: it is another one. */
static size_t loaded(const uint8_t *code, size_t len, uint64_t address, uint64_t *value)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x05}, mov[] = {0x48, 0xc7, 0xc0};

	if (len >= 7 && !memcmp(code, lea, sizeof(lea))) { /* lea DISTANCE(%rip),%rax */
		*value = address + 7 + (uint64_t)(int32_t)little_endian(code + 3, 4);
		return 7;
	}
	if (len >= 7 && !memcmp(code, mov, sizeof(mov))) { /* mov $VALUE,%rax */
		*value = (uint64_t)(int32_t)little_endian(code + 3, 4);
		return 7;
	}
	if (len >= 5 && code[0] == 0xb8) { /* mov $VALUE,%eax */
		*value = little_endian(code + 1, 4);
		return 5;
	}
	if (len >= 10 && code[0] == 0x48 && code[1] == 0xb8) { /* movabs $VALUE,%rax */
		*value = little_endian(code + 2, 8);
		return 10;
	}
	return 0;
}

bool lsan_suppressions_returned(const uint8_t *code, size_t len, uint64_t address,
				uint64_t *returned)
{
	size_t at = skip(code, len, 0, before, sizeof(before) / sizeof(*before));
	size_t load = loaded(code + at, len - at, address + at, returned);

	at = skip(code, len, at + load, after, sizeof(after) / sizeof(*after));
	if (len - at >= 2 && code[at] == 0xf3) /* rep ret */
		at++;
	return load && at < len && code[at] == 0xc3;
}

/* The string at @address, to be freed, or NULL. */
static char *string_at(Elf *elf, uint64_t address)
{
	size_t len;
	const char *bytes = elffile_bytes(elf, address, LSAN_SUPPRESSIONS_MAX, &len);

	return bytes && memchr(bytes, '\0', len) ? strdup(bytes) : NULL;
}

char *lsan_suppressions_of(Elf *elf, Elf *debug, bool *unclear)
{
	static const char *const name[] = {"__lsan_default_suppressions"};
	struct elf_function function = {0};
	const struct elf_names names = {name, 1, &function};
	const void *code;
	uint64_t returned;
	char *text = NULL;
	size_t len;

	*unclear = false;
	elffile_functions(elf, elf, ELF_EXPORTED, &names);
	if (!function.found && debug)
		elffile_functions(elf, debug, ELF_ALL, &names);
	if (!function.found)
		return NULL;
	code = elffile_bytes(elf, function.address, CODE_MAX, &len);
	if (code && lsan_suppressions_returned(code, len, function.address, &returned))
		text = string_at(elf, returned);
	*unclear = !text;
	if (text && !*text) {
		free(text);
		text = NULL;
	}
	return text;
}
