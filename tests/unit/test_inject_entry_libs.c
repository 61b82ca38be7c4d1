/* test_inject_entry_libs.c - the entries of real libraries, against a disassembler's text
 *
 * What was moved must read as the original does, once all addresses are written in full.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <Zydis/Zydis.h>

#include "array.h"
#include "record/inject/entry.h"
#include "record/module/elffile.h"

static const char *const libraries[] = {
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/x86_64-linux-gnu/libm.so.6",
	"/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
	"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
	"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
	"/usr/lib/x86_64-linux-musl/libc.so",
};
#define NR_LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

/* What a process allocates by. */
static const char *const allocators[] = {"malloc",   "calloc",	      "realloc",	"free",
					 "memalign", "aligned_alloc", "posix_memalign", "mmap",
					 "mmap64",   "munmap",	      "mremap",		"mprotect",
					 "madvise",  "reallocarray",  "valloc",		"pvalloc"};

struct function {
	uint64_t at, size;
	char name[48];
};

/* A library's functions, in the order of their addresses, and its code; all zero at first. */
struct library {
	int fd;
	Elf *elf;
	const uint8_t *text;
	uint64_t text_at, text_len;
	struct function *v;
	size_t nr, max;
};

static void add_functions(struct library *lib, Elf *elf)
{
	struct elf_symbols s = {.elf = elf};

	while (elffile_next_symbol(&s)) {
		const char *name = elffile_symbol_name(&s);
		unsigned int type = GELF_ST_TYPE(s.sym.st_info);

		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s.sym.st_shndx == SHN_UNDEF ||
		    s.sym.st_value - lib->text_at >= lib->text_len)
			continue;
		assert_int_equal(grow_array(&lib->v, lib->nr, &lib->max, sizeof(*lib->v)), 0);
		lib->v[lib->nr] = (struct function){.at = s.sym.st_value, .size = s.sym.st_size};
		snprintf(lib->v[lib->nr++].name, sizeof(lib->v->name), "%s", name ? name : "?");
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* All functions of the file @path, with those that its debug file knows.  False: there is no such
 * file.  close_library() follows in either case. */
static bool read_library(struct library *lib, const char *path)
{
	int debug_fd = -1;
	GElf_Phdr ph;
	Elf *debug;
	size_t nr;

	lib->fd = open(path, O_RDONLY | O_CLOEXEC);
	lib->elf = lib->fd < 0 ? NULL : elffile_open(lib->fd);
	if (!lib->elf)
		return false;
	assert_int_equal(elf_getphdrnum(lib->elf, &nr), 0);
	for (size_t i = 0; i < nr && !lib->text; i++) {
		uint64_t start;

		assert_non_null(gelf_getphdr(lib->elf, (int)i, &ph));
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		lib->text = elffile_code(lib->elf, ph.p_offset, &start, &lib->text_len);
		lib->text_at = ph.p_vaddr;
	}
	assert_non_null(lib->text);
	add_functions(lib, lib->elf);
	debug = debugfile_open(lib->elf, path, &debug_fd);
	if (debug) {
		add_functions(lib, debug);
		elf_end(debug);
		close(debug_fd);
	}
	qsort(lib->v, lib->nr, sizeof(*lib->v), compare_functions);
	return true;
}

static void close_library(struct library *lib)
{
	free(lib->v);
	elf_end(lib->elf);
	if (lib->fd >= 0)
		close(lib->fd);
}

/* What is at @address as text; returns its length in bytes, and in *@ends if nothing follows. */
static size_t disassemble(const uint8_t *bytes, size_t len, uint64_t address, char *text,
			  bool *ends)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisFormatter formatter;
	ZydisDecoder decoder;
	char *bnd;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len, &insn, operands)))
		fail_msg("0x%llx is no instruction", (unsigned long long)address);
	ZydisFormatterFormatInstruction(&formatter, &insn, operands, insn.operand_count_visible,
					text, 200, address, NULL);
	bnd = strstr(text, "bnd ");
	if (bnd == text)
		memmove(text, text + 4, strlen(text + 4) + 1);
	*ends = !strncmp(text, "jmp", 3) || !strncmp(text, "ret", 3) ||
		!strncmp(text, "notrack jmp", 11);
	return insn.length;
}

/* Read what was moved beside the original. */
static void check_moved(const struct function *f, const struct inject_code *code,
			const struct inject_entry *e, uint64_t moved_at)
{
	char one[200], other[200];
	size_t from = 0, to = 0;
	bool ends = false;

	while (from < e->covered) {
		size_t first = (size_t)(e->at - code->at) + from;

		assert_false(ends);
		from += disassemble(code->bytes + first, code->len - first, e->at + from, one,
				    &ends);
		to += disassemble(e->moved + to, e->nr_moved - to, moved_at + to, other, &ends);
		if (strcmp(one, other) != 0)
			fail_msg("%s: %s became %s", f->name, one, other);
	}
	assert_int_equal(from, e->covered);
	if (!ends) {
		to += disassemble(e->moved + to, e->nr_moved - to, moved_at + to, other, &ends);
		snprintf(one, sizeof(one), "jmp 0x%016llX",
			 (unsigned long long)(e->at + e->covered));
		assert_string_equal(one, other);
	}
	assert_int_equal(to, e->nr_moved);
}

static void check_jump(const struct inject_entry *e, uint64_t slot)
{
	char one[200], other[200];
	bool ends;

	assert_int_equal(disassemble(e->after, INJECT_JUMP, e->at, one, &ends), INJECT_JUMP);
	snprintf(other, sizeof(other), "jmp 0x%016llX", (unsigned long long)slot);
	assert_string_equal(one, other);
}

/* Plan the change of the @i-th function.  NULL, or why it is refused; @text: all code is examined.
 */
static const char *check_function(const struct library *lib, size_t i, bool text)
{
	const struct function *f = &lib->v[i];
	/* Somewhere within reach, and the second at an odd address. */
	const uint64_t slot = lib->text_at + lib->text_len + 64 * i,
		       moved_at = slot + (3u << 28) + 7;
	struct inject_code code = {.at = f->at,
				   .bytes = lib->text + (f->at - lib->text_at),
				   .len = lib->text_len - (f->at - lib->text_at),
				   .size = f->size,
				   .next = lib->text_at + lib->text_len};
	struct inject_entry e;
	const char *why;

	for (size_t k = i + 1; k < lib->nr; k++)
		if (lib->v[k].at > f->at) {
			code.next = lib->v[k].at;
			break;
		}
	if (!f->size && code.len > 4096)
		code.len = 4096;
	if (text) {
		code.text = lib->text;
		code.text_at = lib->text_at;
		code.text_len = lib->text_len;
	}
	why = inject_entry_plan(&e, &code, slot, moved_at);
	if (why)
		return why;
	assert_memory_equal(e.before, code.bytes + (e.at - code.at), INJECT_JUMP);
	check_moved(f, &code, &e, moved_at);
	check_jump(&e, slot);
	return NULL;
}

/* The operators of libstdc++ call malloc, at once some of them. */
static bool is_allocator(const char *name, const char *library)
{
	for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++)
		if (!strcmp(name, allocators[i]))
			return true;
	if (strstr(library, "libstdc++"))
		return false;
	return !strncmp(name, "_Znw", 4) || !strncmp(name, "_Zna", 4) ||
	       !strncmp(name, "_Zdl", 4) || !strncmp(name, "_Zda", 4);
}

static void entries_of_libraries_read_as_before(void **state)
{
	size_t nr_libraries = 0;

	(void)state;
	for (size_t l = 0; l < NR_LIBRARIES; l++) {
		struct library lib = {0};
		size_t nr = 0, accepted = 0;

		if (read_library(&lib, libraries[l])) {
			for (size_t i = 0; i < lib.nr; i++) {
				if (i && lib.v[i].at == lib.v[i - 1].at)
					continue;
				nr++;
				accepted += !check_function(&lib, i, false);
			}
			/* The others call something at once, or are too short. */
			if (!nr || accepted * 10 < nr * 7)
				fail_msg("%s: %zu of %zu", libraries[l], accepted, nr);
			nr_libraries++;
		}
		close_library(&lib);
	}
	assert_true(nr_libraries > 0);
}

static void allocators_are_accepted(void **state)
{
	size_t nr = 0;

	(void)state;
	for (size_t l = 0; l < NR_LIBRARIES; l++) {
		struct library lib = {0};

		if (read_library(&lib, libraries[l]))
			for (size_t i = 0; i < lib.nr; i++) {
				const char *why;

				if (!is_allocator(lib.v[i].name, libraries[l]))
					continue;
				why = check_function(&lib, i, true);
				if (why)
					fail_msg("%s of %s: %s", lib.v[i].name, libraries[l], why);
				nr++;
			}
		close_library(&lib);
	}
	assert_true(nr >= 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_of_libraries_read_as_before),
		cmocka_unit_test(allocators_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
