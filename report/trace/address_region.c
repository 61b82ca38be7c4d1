/* address_region.c - see address_region.h */
#include "report/trace/address_region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"

#define PERMS_MAX 5

static const char *const names[] = {
	[REGION_NONE] = "none",
	[REGION_HEAP] = "heap",
	[REGION_MAIN_STACK] = "main stack",
	[REGION_ANONYMOUS] = "anonymous",
	[REGION_FILE] = "file",
	[REGION_SPECIAL] = "special",
};

static enum region_kind kind_of(const char *path)
{
	if (!strcmp(path, "[heap]"))
		return REGION_HEAP;
	if (!strcmp(path, "[stack]"))
		return REGION_MAIN_STACK;
	if (!path[0] || !strncmp(path, "[anon", strlen("[anon")))
		return REGION_ANONYMOUS;
	return path[0] == '[' ? REGION_SPECIAL : REGION_FILE;
}

/* Is what was seen at @time_ns to replace what @region has? */
static bool is_closer(const struct address_region *region, uint64_t time_ns, uint64_t end_ns)
{
	if (region->kind == REGION_UNKNOWN && !region->cut)
		return true;
	return time_ns <= end_ns ? time_ns >= region->time_ns || region->time_ns > end_ns
				 : time_ns < region->time_ns;
}

void address_region_release(struct address_region *region)
{
	free(region->path);
	*region = (struct address_region){0};
}

/* The address, @at bytes behind its start, is in @found, whose path is copied. */
static int set_found(struct address_region *region, struct address_region found, uint64_t at,
		     const char *path)
{
	address_region_release(region);
	found.kind = kind_of(path);
	found.offset += at;
	if (path[0]) {
		found.path = strdup(path);
		if (!found.path)
			return -ENOMEM;
	}
	*region = found;
	return 0;
}

int address_region_note(struct address_region *region, const struct mlk_regions *regions,
			uint64_t addr, uint64_t end_ns)
{
	const struct mlk_mapping *last = regions->nr ? &regions->mappings[regions->nr - 1] : NULL;

	if (!region->from_pass && !is_closer(region, regions->time_ns, end_ns))
		return 0;
	for (size_t i = 0; i < regions->nr; i++) {
		const struct mlk_mapping *m = &regions->mappings[i];

		if (addr < m->start || addr >= m->end)
			continue;
		return set_found(region,
				 (struct address_region){.time_ns = regions->time_ns,
							 .start = m->start,
							 .end = m->end,
							 .offset = m->offset,
							 .perms = m->perms},
				 addr - m->start, m->path);
	}
	address_region_release(region);
	region->time_ns = regions->time_ns;
	region->cut = regions->left_out && (!last || addr >= last->end);
	region->kind = region->cut ? REGION_UNKNOWN : REGION_NONE;
	return 0;
}

int address_region_note_pass(struct address_region *region, const struct mlk_pass *pass,
			     uint64_t addr, uint64_t end_ns)
{
	bool any = region->kind != REGION_UNKNOWN || region->cut;

	if ((any && !region->from_pass) || !is_closer(region, pass->begin_ns, end_ns))
		return 0;
	address_region_release(region); /* of what it does not have nothing is known */
	for (size_t i = 0; i < pass->nr_ranges; i++) {
		const struct mlk_range *r = &pass->ranges[i];

		if (addr < r->start || addr >= r->end)
			continue;
		return set_found(region,
				 (struct address_region){.from_pass = true,
							 .time_ns = pass->begin_ns,
							 .start = r->start,
							 .end = r->end,
							 .offset = r->offset,
							 .perms = r->perms},
				 addr - r->start, r->path);
	}
	return 0;
}

static const char *perms_text(char text[PERMS_MAX], uint32_t perms)
{
	text[0] = perms & MLK_PERM_R ? 'r' : '-';
	text[1] = perms & MLK_PERM_W ? 'w' : '-';
	text[2] = perms & MLK_PERM_X ? 'x' : '-';
	text[3] = perms & MLK_PERM_SHARED ? 's' : 'p';
	text[4] = '\0';
	return text;
}

void address_region_print(FILE *out, const struct address_region *region)
{
	static const char *const is_in[] = {
		[REGION_HEAP] = "the heap",
		[REGION_MAIN_STACK] = "the main thread's stack",
		[REGION_ANONYMOUS] = "anonymous memory",
		[REGION_FILE] = "",
		[REGION_SPECIAL] = "",
	};
	char perms[PERMS_MAX];

	if (region->cut) {
		fputs("it may have been mapped: there was no room in the trace for all mappings",
		      out);
		return;
	}
	if (region->kind == REGION_NONE) {
		fputs("nothing was mapped there", out);
		return;
	}
	fprintf(out, "it is in %s", is_in[region->kind]);
	if (region->path && region->kind == REGION_ANONYMOUS)
		putc(' ', out);
	if (region->path && region->kind != REGION_HEAP && region->kind != REGION_MAIN_STACK)
		text_print(out, region->path);
	if (region->kind == REGION_FILE)
		fprintf(out, " (+0x%" PRIx64 ")", region->offset);
	fprintf(out, ", 0x%" PRIx64 "-0x%" PRIx64 " %s", region->start, region->end,
		perms_text(perms, region->perms));
}

void address_region_json(struct json *json, const struct address_region *region, uint64_t start_ns)
{
	char perms[PERMS_MAX];

	json_text(json, "kind", region->cut ? "unknown" : names[region->kind]);
	json_number(json, "at_ns", region->time_ns > start_ns ? region->time_ns - start_ns : 0);
	if (region->cut || region->kind == REGION_NONE)
		return;
	json_number(json, "start", region->start);
	json_number(json, "end", region->end);
	json_text(json, "perms", perms_text(perms, region->perms));
	if (region->path)
		json_text(json, "path", region->path);
	if (region->kind == REGION_FILE)
		json_number(json, "offset", region->offset);
}
