/* alloc_functions.c - see alloc_functions.h */
#include "record/allocator/alloc_functions.h"

#include <stdio.h>
#include <string.h>

#include "bpf/event.h"
#include "record/code/probe_site.h"

const struct alloc_function wanted[WANTED_NR] = {
	{"malloc", FUNC_MALLOC, SITE_ALLOC, 1, WANTED_C},
	{"free", FUNC_FREE, SITE_FREE, 1, WANTED_C},
	{"calloc", FUNC_CALLOC, SITE_ALLOC, 2, WANTED_C},
	{"realloc", FUNC_REALLOC, SITE_ALLOC, 2, WANTED_C},
	{"reallocarray", FUNC_REALLOCARRAY, SITE_ALLOC, 3, WANTED_C},
	{"posix_memalign", FUNC_POSIX_MEMALIGN, SITE_ALLOC, 3, WANTED_C},
	{"aligned_alloc", FUNC_ALIGNED_ALLOC, SITE_ALLOC, 2, WANTED_C},
	{"memalign", FUNC_MEMALIGN, SITE_ALLOC, 2, WANTED_C},
	{"valloc", FUNC_VALLOC, SITE_ALLOC, 1, WANTED_C},
	{"pvalloc", FUNC_PVALLOC, SITE_ALLOC, 1, WANTED_C},
	{"cfree", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"free_sized", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"free_aligned_sized", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	/* jemalloc's: Rust's jemallocator frees all blocks by sdallocx */
	{"mallocx", FUNC_MALLOC, SITE_ALLOC, 1, WANTED_OWN},
	{"rallocx", FUNC_REALLOC, SITE_ALLOC, 2, WANTED_OWN},
	{"dallocx", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"sdallocx", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"mmap", FUNC_MMAP, SITE_ALLOC, 4, WANTED_MAP},
	{"mmap64", FUNC_MMAP, SITE_ALLOC, 4, WANTED_MAP},
	{"mremap", FUNC_MREMAP, SITE_ALLOC, 4, WANTED_MAP},
	{"munmap", FUNC_MUNMAP, SITE_FREE, 2, WANTED_MAP},
	{"mprotect", FUNC_MPROTECT, SITE_ALLOC, 3, WANTED_MAP},
	{"madvise", FUNC_MADVISE, SITE_ALLOC, 3, WANTED_MAP},
	{"_Znwm", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnwmRKSt9nothrow_t", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnwmSt11align_val_t", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_Znam", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnamRKSt9nothrow_t", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnamSt11align_val_t", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPv", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvm", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvmSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPv", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvm", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvmSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
};

static bool is_new(uint32_t func)
{
	return func == FUNC_NEW || func == FUNC_NEW_ARRAY;
}

bool alloc_functions_is_operator(size_t i)
{
	return is_new(wanted[i].func) || wanted[i].func == FUNC_DELETE;
}

/* libstdc++ calls malloc after 23 bytes, aligned_alloc after 65.  What an allocator's operator does
 * by itself it does here; what it calls behind that is for the rest. */
#define BEGINNING 128

#define CALL 0xe8 /* and JMP: four bytes follow, the distance from behind them */
#define JMP  0xe9

/* Does @op begin by calling @func of the same file? */
static bool calls(Elf *elf, const struct elf_function *op, const struct elf_function *func)
{
	size_t most = op->size && op->size < BEGINNING ? (size_t)op->size : BEGINNING, len;
	const uint8_t *code = elffile_bytes(elf, op->address, most, &len);
	int32_t distance;

	/* Bytes that are no such instruction would have to hold the very distance by chance. */
	for (size_t i = 0; code && i + 5 <= len; i++) {
		if (code[i] != CALL && code[i] != JMP)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		if (op->address + i + 5 + (uint64_t)(int64_t)distance == func->address)
			return true;
	}
	return false;
}

/* Does operator @op call a function that allocates, or one of the operators @left, which do? */
static bool calls_any(Elf *elf, const struct elf_function *found, size_t op, const bool *left)
{
	for (size_t i = 0; i < WANTED_NR; i++) {
		bool below = wanted[i].group == WANTED_C && wanted[i].kind == SITE_ALLOC;

		if (found[i].found && (below || left[i]) && calls(elf, &found[op], &found[i]))
			return true;
	}
	return false;
}

bool cxx_operators_leave(Elf *elf, struct elf_function *found)
{
	bool left[WANTED_NR] = {0}, any = false, all = true;

	for (size_t i = 0; i < WANTED_NR; i++) {
		if (!is_new(wanted[i].func) || !found[i].found)
			continue;
		left[i] = calls_any(elf, found, i, left);
		any |= left[i];
		all &= left[i];
	}
	/* Where new does something by itself, so may delete, though it calls free for the rest. */
	for (size_t i = 0; i < WANTED_NR; i++)
		if (left[i] || (any && all && alloc_functions_is_operator(i)))
			found[i].found = false;
	return any && all;
}

#define UNKNOWN_SIZE 64 /* bytes examined of a function whose size is not told */

void sites_add(struct alloc_object *object, const struct site_wanted *w)
{
	struct alloc_site *site = &object->sites[object->nr];

	if (object->nr == ALLOCATOR_MAX_SITES)
		return;
	/* Two names of one function (glibc's aligned_alloc is memalign) need one probe. */
	for (size_t i = 0; i < object->nr; i++)
		if (object->sites[i].function == w->at->file_offset)
			return;
	memset(site, 0, sizeof(*site));
	snprintf(site->name, sizeof(site->name), "%s", w->name);
	site->func = w->func;
	site->kind = w->kind;
	site->nr_args = w->nr_args;
	site->function = w->at->file_offset;
	site->size = w->at->size ? w->at->size : UNKNOWN_SIZE;
	object->nr++;
}

/* Look at the code of @site, which begins @at bytes into @text. */
static void choose_site(struct alloc_site *site, const uint8_t *text, size_t len, size_t at)
{
	size_t size = site->size < len - at ? (size_t)site->size : len - at;
	struct probe_site best =
		probe_site_find(text + at, size, site->nr_args, event_maps_memory(site->func));

	site->nr_bytes = (uint8_t)(size < sizeof(site->bytes) ? size : sizeof(site->bytes));
	memcpy(site->bytes, text + at, site->nr_bytes);
	site->offset = best.offset;
	site->emulated = best.emulated;
	site->moved = 0;
	for (unsigned int i = 0; i < site->nr_args && i < EVENT_MOVED_ARGS; i++)
		site->moved |= event_moved(i, best.args[i]);
}

/* Back to the start with the sites behind it if something in @text jumps to them, or to what lies
 * before them. */
static void refuse_jumped_to(struct alloc_object *object, const uint8_t *text, size_t len,
			     uint64_t start)
{
	struct probe_span spans[ALLOCATOR_MAX_SITES];
	size_t nr = 0;
	struct alloc_site *of[ALLOCATOR_MAX_SITES];
	bool hit[ALLOCATOR_MAX_SITES];

	for (size_t i = 0; i < object->nr; i++) {
		struct alloc_site *site = &object->sites[i];

		if (!site->offset || site->function < start || site->function - start >= len)
			continue;
		of[nr] = site;
		spans[nr].last = (size_t)(site->function + site->offset - start);
		spans[nr++].first = (size_t)(site->function + 1 - start);
	}
	if (nr)
		probe_site_jumps(text, len, spans, nr, hit);
	for (size_t i = 0; i < nr; i++)
		if (hit[i]) {
			of[i]->offset = 0;
			of[i]->emulated = false;
			of[i]->moved = 0;
			of[i]->jumped_to = true;
		}
}

void sites_choose(struct alloc_object *object, Elf *elf)
{
	uint64_t start = 0, len = 0;
	const uint8_t *text = NULL;

	for (size_t i = 0; i < object->nr; i++) {
		struct alloc_site *site = &object->sites[i];

		if (!text || site->function < start || site->function - start >= len) {
			if (text)
				refuse_jumped_to(object, text, len, start);
			text = elffile_code(elf, site->function, &start, &len);
		}
		if (text)
			choose_site(site, text, len, (size_t)(site->function - start));
	}
	if (text)
		refuse_jumped_to(object, text, len, start);
}

/* Have @code be what @site is in.  NULL, or why that cannot be. */
static const char *read_code(struct returns_code *code, const struct alloc_site *site)
{
	code->text = elffile_code(code->elf, site->function, &code->start, &code->len);
	if (!code->text)
		return code->len ? "its code cannot be read" : "its code is in no segment";
	code->bias = elffile_bias(code->elf, site->function);
	return NULL;
}

static bool is_operator(const struct alloc_site *site)
{
	return is_new(site->func) || site->func == FUNC_DELETE;
}

/* Does the operator @site of @object do nothing but jump to malloc, free or another of C's
 * functions?  It is seen there, and its own probes would only cost: those of new are on the `ret`
 * instructions of what it jumps to, at which the kernel single-steps. */
static bool is_forwarder(const struct alloc_object *object, const struct alloc_site *site,
			 struct returns_code *code)
{
	uint64_t to;

	if (!is_operator(site) || read_code(code, site))
		return false;
	to = returns_forwarded(code, site->function);
	for (size_t i = 0; i < object->nr; i++)
		if (object->sites[i].function == to && !is_operator(&object->sites[i]))
			return true;
	return false;
}

static void leave_forwarders(struct alloc_object *object, struct returns_code *code)
{
	size_t kept = 0;

	for (size_t i = 0; i < object->nr; i++)
		if (!is_forwarder(object, &object->sites[i], code))
			object->sites[kept++] = object->sites[i];
	object->nr = kept;
}

/* Find the returns of @site.  NULL, or why they are not known. */
static const char *find_returns(struct alloc_object *object, const struct alloc_site *site,
				struct returns_code *code)
{
	const char *why = read_code(code, site);

	if (why)
		return why;
	code->by_memory = site->func == FUNC_POSIX_MEMALIGN;
	return returns_find(&object->returns, code, site->function, site->size);
}

enum sites_by_ret sites_without_probe(Elf *elf)
{
	static const char *const name[] = {"__sanitizer_print_stack_trace"};
	struct elf_function found = {0};
	const struct elf_names names = {name, 1, &found};

	elffile_functions(elf, elf, ELF_EXPORTED, &names);
	return found.found ? SITES_FOLLOWED : SITES_OPERATORS;
}

void sites_find_returns(struct alloc_object *object, Elf *elf, enum sites_by_ret which)
{
	uint64_t probed[ALLOCATOR_MAX_SITES];
	struct returns_code code = {.elf = elf, .cfi = dwarf_getcfi_elf(elf), .probed = probed};
	size_t kept = 0;

	leave_forwarders(object, &code);
	for (size_t i = 0; i < object->nr; i++)
		probed[code.nr_probed++] = object->sites[i].function + object->sites[i].offset;
	for (size_t i = 0; i < object->nr; i++) {
		struct alloc_site *site = &object->sites[i];
		const char *why = NULL;

		site->by_ret = is_new(site->func) ||
			       (which != SITES_OPERATORS && site->kind == SITE_ALLOC);
		if (site->by_ret)
			why = find_returns(object, site, &code);
		if (why && which == SITES_FOLLOWED && !is_new(site->func)) {
			site->by_ret = false;
			why = NULL;
		}
		if (why) {
			memcpy(object->left, site->name, sizeof(object->left));
			object->why_left = why;
			object->malloc_left |= site->func == FUNC_MALLOC;
		} else {
			object->sites[kept++] = *site;
		}
	}
	object->nr = kept;
	dwarf_cfi_end(code.cfi);
}
