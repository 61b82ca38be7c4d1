/* sites.c - one look over an object's code for all its sites */
#include "record/allocator/sites.h"

#include <stdio.h>
#include <string.h>

#include "record/code/probe_site.h"

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
static void choose(struct alloc_site *site, const uint8_t *text, size_t len, size_t at)
{
	size_t size = site->size < len - at ? (size_t)site->size : len - at;
	struct probe_site best = probe_site_find(text + at, size, site->nr_args);

	site->nr_bytes = (uint8_t)(size < sizeof(site->bytes) ? size : sizeof(site->bytes));
	memcpy(site->bytes, text + at, site->nr_bytes);
	site->offset = best.offset;
	site->emulated = best.emulated;
}

/* Back to the start with the sites behind it to which something in @text jumps. */
static void refuse_jumped_to(struct alloc_object *object, const uint8_t *text, size_t len,
			     uint64_t start)
{
	size_t targets[ALLOCATOR_MAX_SITES], nr = 0;
	struct alloc_site *of[ALLOCATOR_MAX_SITES];
	bool hit[ALLOCATOR_MAX_SITES];

	for (size_t i = 0; i < object->nr; i++) {
		struct alloc_site *site = &object->sites[i];

		if (!site->offset || site->function < start || site->function - start >= len)
			continue;
		of[nr] = site;
		targets[nr++] = (size_t)(site->function + site->offset - start);
	}
	if (nr)
		probe_site_jumps(text, len, targets, nr, hit);
	for (size_t i = 0; i < nr; i++)
		if (hit[i]) {
			of[i]->offset = 0;
			of[i]->emulated = false;
			of[i]->jumped_to = true;
		}
}

void sites_choose(struct alloc_object *object, Elf *elf)
{
	uint64_t start = 0, len = 0;
	Elf_Data *code = NULL;

	for (size_t i = 0; i < object->nr; i++) {
		struct alloc_site *site = &object->sites[i];

		if (!code || site->function < start || site->function - start >= len) {
			if (code)
				refuse_jumped_to(object, code->d_buf, code->d_size, start);
			code = NULL;
			if (elffile_code(elf, site->function, &start, &len))
				code = elf_getdata_rawchunk(elf, (int64_t)start, (size_t)len,
							    ELF_T_BYTE);
			if (code)
				len = code->d_size;
		}
		if (code)
			choose(site, code->d_buf, code->d_size, (size_t)(site->function - start));
	}
	if (code)
		refuse_jumped_to(object, code->d_buf, code->d_size, start);
}

/* Find the returns of @site.  NULL, or why they are not known. */
static const char *find_returns(struct alloc_object *object, const struct alloc_site *site,
				struct returns_code *code)
{
	Elf_Data *data = NULL;

	if (!elffile_code(code->elf, site->function, &code->start, &code->len))
		return "its code is in no segment";
	data = elf_getdata_rawchunk(code->elf, (int64_t)code->start, (size_t)code->len, ELF_T_BYTE);
	if (!data)
		return "its code cannot be read";
	code->text = data->d_buf;
	code->len = data->d_size;
	code->bias = elffile_bias(code->elf, site->function);
	return returns_find(&object->returns, code, site->function, site->size);
}

void sites_find_returns(struct alloc_object *object, Elf *elf, bool all)
{
	struct returns_code code = {.elf = elf, .cfi = dwarf_getcfi_elf(elf)};
	size_t kept = 0;

	for (size_t i = 0; i < object->nr; i++) {
		struct alloc_site *site = &object->sites[i];
		bool is_new = site->func == FUNC_NEW || site->func == FUNC_NEW_ARRAY;
		const char *why = NULL;

		site->by_ret = is_new || (all && site->kind == SITE_ALLOC);
		if (site->by_ret)
			why = find_returns(object, site, &code);
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
