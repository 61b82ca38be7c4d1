/* test_inject_entry_alloc.c - allocators whose functions begin with a jump work on
 *
 * The program changes the code of libc, or of a library that it opens, in its own memory.
 */
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/inject/entry.h"
#include "tests/unit/inject_island.h"

struct allocator {
	__typeof__(malloc) *malloc;
	__typeof__(calloc) *calloc;
	__typeof__(realloc) *realloc;
	__typeof__(free) *free;
	__typeof__(posix_memalign) *posix_memalign;
	__typeof__(aligned_alloc) *aligned_alloc;
	__typeof__(mmap) *mmap;
	__typeof__(mremap) *mremap;
	__typeof__(mprotect) *mprotect;
	__typeof__(madvise) *madvise;
	__typeof__(munmap) *munmap;
};

/* In its order. */
static const char *const names[] = {"malloc",	      "calloc",	       "realloc", "free",
				    "posix_memalign", "aligned_alloc", "mmap",	  "mremap",
				    "mprotect",	      "madvise",       "munmap"};
#define NR (sizeof(names) / sizeof(names[0]))

_Static_assert(sizeof(struct allocator) == NR * sizeof(void *), "a name for each");

static void *allocate(const struct allocator *a, size_t size)
{
	void *block = NULL;

	switch (next_random() % 4) {
	case 0:
		return a->malloc(size);
	case 1:
		return a->calloc(1, size);
	case 2:
		return a->aligned_alloc(64, size);
	default:
		return a->posix_memalign(&block, 4096, size) ? NULL : block;
	}
}

/* Allocate, reallocate and free; no block may change meanwhile. */
static bool use_blocks(const struct allocator *a)
{
	struct {
		uint8_t *at;
		size_t size;
		uint8_t fill;
	} blocks[64] = {0};

	for (int i = 0; i < 20000; i++) {
		size_t k = next_random() % 64, size = next_random() % 3000 + 1;

		if (i % 1000 == 0)
			size = 1 << 20; /* mapped */
		for (size_t b = 0; b < blocks[k].size; b += 97)
			if (blocks[k].at[b] != blocks[k].fill)
				return false;
		if (blocks[k].at && i % 2) {
			a->free(blocks[k].at);
			blocks[k].at = NULL;
			blocks[k].size = 0;
			continue;
		}
		blocks[k].at = blocks[k].at ? a->realloc(blocks[k].at, size) : allocate(a, size);
		if (!blocks[k].at)
			return false;
		blocks[k].size = size;
		blocks[k].fill = (uint8_t)i;
		memset(blocks[k].at, i, size);
	}
	for (size_t k = 0; k < 64; k++)
		a->free(blocks[k].at);
	return true;
}

static bool use_mappings(const struct allocator *a)
{
	for (int i = 0; i < 100; i++) {
		uint8_t *p = a->mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return false;
		p[1] = 7;
		p = a->mremap(p, 4096, 1 << 20, MREMAP_MAYMOVE);
		if (p == MAP_FAILED || p[1] != 7 || a->mprotect(p, 4096, PROT_READ) ||
		    a->madvise(p, 1 << 20, MADV_DONTNEED) || p[1] != 0 || a->munmap(p, 1 << 20) ||
		    a->munmap(p + 1, 1) == 0)
			return false;
	}
	return true;
}

/* The code of the function @at; its size is 0 if it is not known. */
static struct inject_code find_code(const void *at)
{
	const ElfW(Sym) *sym = NULL;
	struct inject_code code = {.at = (uintptr_t)at, .bytes = at};
	Dl_info info;

	if (dladdr1(at, &info, (void **)&sym, RTLD_DL_SYMENT) && sym && info.dli_saddr == at)
		code.size = sym->st_size;
	code.len = code.size + 16;
	return code;
}

/* Change all functions, found by @handle, use them, and change them back.  NULL, or what is wrong.
 */
static const char *change_all(void *handle)
{
	struct inject_entry entries[NR];
	void *functions[NR];
	struct island *islands = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t calls[NR];
	struct allocator a;

	for (size_t i = 0; i < NR; i++) {
		functions[i] = dlsym(handle, names[i]);
		if (!functions[i] || !make_writable(functions[i], (uint8_t *)functions[i] + 16))
			return names[i];
	}
	memcpy(&a, functions, sizeof(a));
	for (size_t i = 0; i < NR; i++) {
		struct inject_code code = find_code(functions[i]);
		const char *why = change(&islands[i], &code, &entries[i]);

		if (why)
			return why;
	}
	if (!use_blocks(&a) || !use_mappings(&a))
		return "the changed functions do something else";
	for (size_t i = 0; i < NR; i++) {
		calls[i] = islands[i].calls;
		if (calls[i] < 100)
			return "not all changed functions were called";
		change_back(&entries[i]);
	}
	if (!use_blocks(&a) || !use_mappings(&a))
		return "the functions do something else afterwards";
	for (size_t i = 0; i < NR; i++)
		if (islands[i].calls != calls[i])
			return "a function is still changed";
	return NULL;
}

/* The same with the functions of @library, which no other code of the process uses. */
static const char *change_library(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	Dl_info info;

	if (!handle)
		return dlerror();
	if (!dladdr(dlsym(handle, "malloc"), &info) || strcmp(info.dli_fname, library) != 0)
		return "malloc is another one";
	return change_all(handle);
}

/* The status to exit with. */
static int report(const char *wrong)
{
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	return wrong ? 1 : 0;
}

static void check_child(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void libc_works_on(void **state)
{
	pid_t child = fork();

	(void)state;
	/* Of libc itself, whatever a sanitizer puts before it. */
	if (!child)
		_exit(report(change_all(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD))));
	check_child(child);
}

/* In a program of its own, for such libraries want memory of each thread that is set aside when a
 * program starts. */
static void check_library(const char *library)
{
	char *const env[] = {(char[]){"GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536"}, NULL},
		    *const argv[] = {(char[]){"test"}, (char *)(uintptr_t)library, NULL};
	pid_t child;

	if (access(library, R_OK))
		skip();
	child = fork();
	if (!child) {
		execve("/proc/self/exe", argv, env);
		_exit(127);
	}
	check_child(child);
}

static void jemalloc_works_on(void **state)
{
	(void)state;
	check_library("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");
}

static void tcmalloc_works_on(void **state)
{
	(void)state;
	check_library("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4");
}

static void mimalloc_works_on(void **state)
{
	(void)state;
	check_library("/usr/lib/x86_64-linux-gnu/libmimalloc.so.2");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc_works_on),
		cmocka_unit_test(jemalloc_works_on),
		cmocka_unit_test(tcmalloc_works_on),
		cmocka_unit_test(mimalloc_works_on),
	};

	if (argc == 2)
		_exit(report(change_library(argv[1]))); /* what tcmalloc keeps is no leak of ours */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
