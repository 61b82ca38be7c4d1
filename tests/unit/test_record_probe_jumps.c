/* test_record_probe_jumps.c - which places of libc and libstdc++ are jumped to, against what
 * objdump says, all of the code taken together
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/code/probe_site.h"

#define LIBRARIES   "/lib/x86_64-linux-gnu/"
#define BETWEEN	    211 /* of so many instructions one is a site */
#define MOST_SITES  8192
#define MOST_WRONG  100 /* of so many sites that nothing jumps to, one may be refused */
#define JUMPED_TO   1
#define INSTRUCTION 2

/* The section .text of a file, and what objdump says of each byte of it. */
struct disassembly {
	uint64_t start;
	size_t len;
	uint8_t *text, *is;
};

/* Where objdump and readelf, of binutils, say that the section is. */
static bool find_text(const char *path, struct disassembly *d, uint64_t *offset)
{
	char command[256], line[512], name[64];
	FILE *out;

	snprintf(command, sizeof(command), "readelf -SW %s", path);
	out = popen(command, "r");
	assert_non_null(out);
	while (!d->len && fgets(line, sizeof(line), out)) {
		const char *bracket = strchr(line, ']');
		unsigned long long start, at, size;

		if (bracket &&
		    sscanf(bracket + 1, "%63s %*s %llx %llx %llx", name, &start, &at, &size) == 4 &&
		    !strcmp(name, ".text")) {
			d->start = start;
			d->len = size;
			*offset = at;
		}
	}
	while (fgets(line, sizeof(line), out))
		;
	assert_int_equal(pclose(out), 0);
	return d->len;
}

/* Note the instruction that objdump shows in @line, and where it leads if that is told in it. */
static void note(struct disassembly *d, const char *line)
{
	unsigned long long at, to;
	char *end, *word;

	at = strtoull(line, &end, 16);
	if (end == line || *end != ':' || at < d->start || at - d->start >= d->len)
		return;
	d->is[at - d->start] |= INSTRUCTION;
	for (word = end + 1; *word == '\t' || *word == ' '; word++)
		;
	/* a branch's operand is a number; prefixes stand before its name */
	for (; *word && *word != '\n'; word += strspn(word, " ")) {
		size_t len = strcspn(word, " \n");

		if (word[0] == 'j' || !strncmp(word, "call", 4) || !strncmp(word, "loop", 4)) {
			to = strtoull(word + len, &end, 16);
			if (end != word + len && (*end == ' ' || *end == '\n') && to >= d->start &&
			    to - d->start < d->len)
				d->is[to - d->start] |= JUMPED_TO;
			return;
		}
		word += len;
	}
}

static bool disassemble(const char *path, struct disassembly *d)
{
	char command[256], line[512];
	uint64_t offset = 0;
	FILE *out;

	*d = (struct disassembly){0};
	if (access(path, R_OK) || !find_text(path, d, &offset))
		return false;
	d->text = malloc(d->len);
	d->is = calloc(d->len, 1);
	out = fopen(path, "rb");
	assert_true(d->text && d->is && out);
	assert_false(fseek(out, (long)offset, SEEK_SET));
	assert_int_equal(fread(d->text, 1, d->len, out), d->len);
	fclose(out);
	snprintf(command, sizeof(command), "objdump -d --no-show-raw-insn -w -j .text %s", path);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out))
		note(d, line[0] == ' ' ? line + strspn(line, " ") : line);
	assert_int_equal(pclose(out), 0);
	return true;
}

static void check_sites(const struct disassembly *d, const char *path)
{
	static struct probe_span sites[MOST_SITES];
	static bool hit[MOST_SITES];
	size_t nr = 0, nr_insn = 0, jumped_to = 0, wrong = 0;

	for (size_t at = 0; at < d->len && nr < MOST_SITES; at++)
		if (d->is[at] & INSTRUCTION && ++nr_insn % BETWEEN == 0)
			sites[nr++] = (struct probe_span){at, at};
	assert_true(nr > 100);
	probe_site_jumps(d->text, d->len, sites, nr, hit);
	for (size_t i = 0; i < nr; i++) {
		if (d->is[sites[i].last] & JUMPED_TO) {
			jumped_to++;
			if (!hit[i])
				fail_msg("%s: a jump to 0x%zx was not seen", path,
					 (size_t)d->start + sites[i].last);
		} else {
			wrong += hit[i];
		}
	}
	print_message("%s: %zu sites, %zu jumped to, %zu others refused\n", path, nr, jumped_to,
		      wrong);
	assert_true(jumped_to > 20);
	assert_true(wrong * MOST_WRONG <= nr - jumped_to);
}

static void jumps_are_those_that_objdump_shows(void **state)
{
	static const char *const paths[] = {LIBRARIES "libc.so.6", LIBRARIES "libm.so.6",
					    "/usr" LIBRARIES "libstdc++.so.6"};
	size_t nr = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct disassembly d;

		if (!disassemble(paths[i], &d))
			continue;
		check_sites(&d, paths[i]);
		free(d.text);
		free(d.is);
		nr++;
	}
	if (!nr)
		skip(); /* no such libraries, as on another architecture */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jumps_are_those_that_objdump_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
