/* address_place.c - see address_place.h */
#include "report/trace/address_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/trace/module_image.h"

/* What is looked for. */
struct search {
	const struct trace_modules *images;
	uint64_t addr;
};

static const char *const names[] = {
	[PLACE_CODE] = "code",
	[PLACE_CONSTANTS] = "read-only data",
	[PLACE_DATA] = "data",
	[PLACE_STACK] = "stack",
};

/* The image of @mapping, NULL: the trace has none. */
static const struct trace_module *image_of(const struct trace_modules *images,
					   const struct mlk_mapping *mapping)
{
	uint32_t module, number;

	if (!mapping->id.len || !trace_modules_find(images, &mapping->id, mapping->path, &module) ||
	    !trace_modules_number(images, module, &number) || images->all[number].broken)
		return NULL;
	return &images->all[number];
}

/* By how much the addresses of @mapping differ from those of @image, modulo 2^64.  False: no
 * segment is what is mapped there. */
static bool bias_of(const struct trace_module *image, const struct mlk_mapping *mapping,
		    uint64_t *bias)
{
	Elf64_Phdr segment;

	for (size_t i = 0; module_segment(image, i, &segment); i++) {
		uint64_t page = segment.p_offset & ~(uint64_t)0xfff;

		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) ||
		    mapping->offset < page || mapping->offset - page >= segment.p_filesz)
			continue;
		*bias = mapping->start - mapping->offset - (segment.p_vaddr - segment.p_offset);
		return true;
	}
	return false;
}

/* In which part of @image, mapped with @bias, the address is. */
static enum place_kind part_of(const struct trace_module *image, uint64_t bias, uint64_t addr)
{
	Elf64_Phdr segment;

	for (size_t i = 0; module_segment(image, i, &segment); i++)
		if (segment.p_type == PT_LOAD && addr - bias - segment.p_vaddr < segment.p_memsz)
			return segment.p_flags & PF_X	? PLACE_CODE
			       : segment.p_flags & PF_W ? PLACE_DATA
							: PLACE_CONSTANTS;
	return PLACE_UNKNOWN;
}

/* The place of process @tgid, made if there is none; NULL: no memory. */
static struct address_place *place_of(struct address_places *places, uint32_t tgid)
{
	const struct address_place new = {.tgid = tgid};
	uint32_t number;

	if (intern_pair(&places->table, &new, sizeof(new), &number) < 0)
		return NULL;
	return &places->all[number];
}

/* Is the address in what @mapping is a part of? */
static bool is_in(const struct search *search, const struct mlk_mapping *mapping,
		  enum place_kind *kind, uint64_t *offset)
{
	const struct trace_module *image = image_of(search->images, mapping);
	uint64_t bias;

	*kind = PLACE_UNKNOWN;
	*offset = search->addr - mapping->start + mapping->offset;
	if (image && bias_of(image, mapping, &bias)) {
		*kind = part_of(image, bias, search->addr);
		*offset = search->addr - bias;
	}
	if (*kind == PLACE_UNKNOWN && search->addr >= mapping->start &&
	    search->addr < mapping->end && mapping->path[0])
		*kind = PLACE_CODE;
	return *kind != PLACE_UNKNOWN;
}

static int look_at_maps(struct address_places *places, const struct search *search,
			const struct mlk_maps *maps)
{
	struct address_place *place = place_of(places, maps->tgid);

	if (!place)
		return -ENOMEM;
	/* what was there before may have been unmapped; of stacks the maps tell nothing */
	free(place->path);
	place->path = NULL;
	if (place->kind != PLACE_STACK)
		place->kind = PLACE_UNKNOWN;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *mapping = &maps->mappings[i];
		enum place_kind kind;

		if (!(mapping->perms & MLK_PERM_X) ||
		    !is_in(search, mapping, &kind, &place->offset))
			continue;
		place->kind = kind;
		place->path = strdup(mapping->path);
		if (!place->path)
			return -ENOMEM;
		break;
	}
	return 0;
}

static int look_at_event(struct address_places *places, const struct search *search,
			 const struct mlk_event *event)
{
	struct address_place *place;

	if (event->kind != MLK_ALLOC || event->nr_regs <= MLK_SP_REG ||
	    search->addr - event->regs[MLK_SP_REG] >= event->stack_len)
		return 0;
	place = place_of(places, event->tgid);
	if (!place)
		return -ENOMEM;
	place->kind = PLACE_STACK;
	place->tid = event->tid;
	return 0;
}

static int look_at_region(struct address_places *places, const struct mlk_record *record,
			  uint64_t addr, uint64_t end_ns)
{
	bool is_pass = record->type == MLK_RECORD_PASS;
	struct address_place *place =
		place_of(places, is_pass ? record->pass.tgid : record->regions.tgid);

	if (!place)
		return -ENOMEM;
	return is_pass ? address_region_note_pass(&place->region, &record->pass, addr, end_ns)
		       : address_region_note(&place->region, &record->regions, addr, end_ns);
}

int address_places_find(struct address_places *places, struct mlk_reader *trace,
			const struct trace_modules *images, uint64_t addr, uint64_t end_ns)
{
	const struct search search = {images, addr};
	struct mlk_record record;
	int err = 0, found;

	while (!err && (found = mlk_reader_next(trace, &record)) > 0) {
		if (record.type == MLK_RECORD_REGIONS || record.type == MLK_RECORD_PASS)
			err = look_at_region(places, &record, addr, end_ns);
		else if (record.type == MLK_RECORD_MAPS && record.maps.time_ns <= end_ns)
			err = look_at_maps(places, &search, &record.maps);
		else if (record.type == MLK_RECORD_EVENT && record.event.time_ns <= end_ns)
			err = look_at_event(places, &search, &record.event);
	}
	return err ? err : found;
}

const struct address_place *address_places_get(const struct address_places *places, uint32_t tgid)
{
	const uint32_t key[] = {tgid, 0};
	uint32_t number;

	if (!intern_find_pair(&places->table, key, sizeof(*places->all), &number) ||
	    (places->all[number].kind == PLACE_UNKNOWN &&
	     places->all[number].region.kind == REGION_UNKNOWN && !places->all[number].region.cut))
		return NULL;
	return &places->all[number];
}

void address_place_print(FILE *out, const struct address_place *place)
{
	if (place->kind == PLACE_UNKNOWN) {
		address_region_print(out, &place->region);
		return;
	}
	if (place->kind == PLACE_STACK) {
		fprintf(out, "it is in the stack of thread %" PRIu32, place->tid);
		return;
	}
	fprintf(out, "it is in the %s of ", names[place->kind]);
	text_print(out, place->path);
	fprintf(out, " (+0x%" PRIx64 ")", place->offset);
}

void address_place_json(struct json *json, const char *key, const struct address_place *place,
			uint64_t start_ns)
{
	json_open(json, key, '{');
	if (place->kind == PLACE_UNKNOWN) {
		address_region_json(json, &place->region, start_ns);
		json_close(json, '}');
		return;
	}
	json_text(json, "kind", names[place->kind]);
	if (place->kind == PLACE_STACK) {
		json_number(json, "thread", place->tid);
	} else {
		json_text(json, "path", place->path);
		json_number(json, "offset", place->offset);
	}
	json_close(json, '}');
}

void address_places_release(struct address_places *places)
{
	for (size_t i = 0; i < places->nr; i++) {
		free(places->all[i].path);
		address_region_release(&places->all[i].region);
	}
	intern_release(&places->table);
	*places = (struct address_places){0};
}
