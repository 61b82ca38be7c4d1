/* php_find.c - see php_find.h
 *
 * The numbers are from the headers of Debian's PHP 8.2, by offsetof(); they are part of its
 * interface for extensions (ZEND_MODULE_API_NO), so they stay within 8.2.
 */
#include "record/interpreter/php_find.h"

#include <ctype.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "record/module/elffile.h"

#define VERSION		 0x0802
#define BEFORE_EXCEPTION 880		      /* and its opline_before_exception */
#define CURRENT		 488		      /* zend_executor_globals.current_execute_data */
#define HEADER		 "X-Powered-By: PHP/" /* what the version stands behind, among constants */
#define CODE_MAX	 64

/* What is looked for among the file's dynamic symbols. */
enum { GLOBALS, EXECUTE, GET_SCOPE, GENERATOR };

/* The word in which the loader puts @address, of a symbol, for the code of a library as Apache's
 * module; 0: there is none. */
static uint64_t find_slot(Elf *elf, uint64_t address)
{
	struct elf_slots s = {.elf = elf};

	while (elffile_next_slot(&s))
		if (s.sym.st_shndx != SHN_UNDEF && s.sym.st_value == address)
			return s.address;
	return 0;
}

/* Does the code of @function read what is @address, relative to itself or @plus above an address
 * that it has so, or by way of a slot? */
static bool reads(Elf *elf, const struct elf_place *function, uint64_t address, int32_t plus)
{
	const uint64_t slot = find_slot(elf, address);
	size_t most = function->size < CODE_MAX ? (size_t)function->size : CODE_MAX, len = 0;
	const uint8_t *code = most ? elffile_bytes(elf, function->start, most, &len) : NULL;
	bool based = false;

	for (size_t i = 0; code && i + 4 <= len; i++) {
		int32_t number;
		uint64_t to;

		memcpy(&number, code + i, sizeof(number));
		to = function->start + i + 4 + (uint64_t)(int64_t)number;
		if (to == address + (uint64_t)plus || (based && number == plus))
			return true;
		based = based || to == address || (slot && to == slot);
	}
	return false;
}

/* Find where frames are.  Returns NULL, or why they cannot be read. */
static const char *find_layout(struct event_python *at, Elf *elf, uint32_t version,
			       const struct elf_place *found, uint64_t bias)
{
	if (version != VERSION)
		return "frames are known of 8.2 only";
	if (!found[GLOBALS].size)
		return "frames of threads (ZTS) are not known";
	if (!found[GENERATOR].size || !reads(elf, &found[GET_SCOPE], found[GLOBALS].start, CURRENT))
		return "its innermost frame is elsewhere than in 8.2";
	*at = (struct event_python){
		.current = found[GLOBALS].start + bias + CURRENT,
		.key = found[GLOBALS].start + bias + BEFORE_EXCEPTION,
		.current_kind = PYTHON_GLOBAL,
		.code_type = found[GENERATOR].start + bias,
		.shape = PYTHON_IS_PHP,
		.version = VERSION | PYTHON_PHP_VERSION,
		/* words of zend_op_array */
		.code_name = 1,
		.code_start = 10, /* how many instructions: "last" */
		.code_lines = 11, /* which: "opcodes" */
		.code_file = 19,
		.code_line = 20,
	};
	return NULL;
}

/* Copy the version to @to, which has room for @room bytes: as no symbol has it, by the header of
 * HTTP that has it. */
static void find_version(char *to, size_t room, Elf *elf)
{
	const size_t len = strlen(HEADER);
	Elf_Scn *section = NULL;
	size_t nr = 0;

	while (!nr && (section = elf_nextscn(elf, section))) {
		GElf_Shdr head;
		Elf_Data *data = NULL;
		const char *at = NULL;

		if (gelf_getshdr(section, &head) && head.sh_type == SHT_PROGBITS &&
		    (head.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) == SHF_ALLOC)
			data = elf_rawdata(section, NULL);
		if (data && data->d_buf)
			at = memmem(data->d_buf, data->d_size, HEADER, len);
		if (!at)
			continue;
		for (at += len; nr + 1 < room && at < (char *)data->d_buf + data->d_size &&
				(isdigit((unsigned char)*at) || *at == '.');)
			to[nr++] = *at++;
	}
	to[nr] = '\0';
}

/* As interpreter_kind.describe. */
static bool describe(struct interpreter_place *place, Elf *elf, const struct elf_place *found,
		     uint64_t bias)
{
	unsigned int major = 0, minor = 0;
	const char *why;

	if (!found[EXECUTE].size || !found[GET_SCOPE].size)
		return false;
	find_version(place->version, sizeof(place->version), elf);
	sscanf(place->version, "%2u.%2u", &major, &minor);
	interpreter_set_ranges(place, elf, &found[EXECUTE], bias);
	why = find_layout(&place->at, elf, major << 8 | minor, found, bias);
	if (why)
		interpreter_give_up(place, why);
	return true;
}

const struct interpreter_kind php_kind = {
	.language = MLK_LANGUAGE_PHP,
	.file = "php",
	.symbols =
		{
			[GLOBALS] = "executor_globals", /* with threads (ZTS) there is none */
			[EXECUTE] = "execute_ex",
			[GENERATOR] = "zend_ce_generator",
			[GET_SCOPE] =
				"zend_get_executed_scope", /* which begins at the innermost frame */
		},
	.describe = describe,
};
