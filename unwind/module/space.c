/* space.c - mappings to segments that are sorted and do not overlap */
#include "unwind/module/space.h"

#include <errno.h>
#include <stdlib.h>

#include "unwind/module/dwunw_state.h"

/* The mappings are painted, last one first, on the line of addresses cut at every start and end. */
struct canvas {
	uint64_t *cuts; /* sorted, each once */
	size_t nr_cuts;
	size_t *owner; /* of the piece from cuts[i] to cuts[i + 1]: number of a mapping, or NOBODY
			*/
	size_t *next;  /* a piece at or after i that has no owner yet; itself if it has none */
};

#define NOBODY SIZE_MAX

static int compare_cuts(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void canvas_release(struct canvas *c)
{
	free(c->next);
	free(c->owner);
	free(c->cuts);
}

static int canvas_init(struct canvas *c, const struct dwunw_mapping *maps, size_t nr_maps)
{
	size_t nr = 0;

	c->cuts = calloc(nr_maps, 2 * sizeof(*c->cuts));
	c->owner = calloc(nr_maps, 2 * sizeof(*c->owner));
	c->next = calloc(nr_maps, 2 * sizeof(*c->next));
	if (!c->cuts || !c->owner || !c->next)
		return -ENOMEM;
	for (size_t i = 0; i < nr_maps; i++) {
		c->cuts[2 * i] = maps[i].start;
		c->cuts[2 * i + 1] = maps[i].end;
	}
	qsort(c->cuts, 2 * nr_maps, sizeof(*c->cuts), compare_cuts);
	for (size_t i = 0; i < 2 * nr_maps; i++)
		if (!i || c->cuts[i] != c->cuts[i - 1])
			c->cuts[nr++] = c->cuts[i];
	c->nr_cuts = nr;
	for (size_t i = 0; i < nr; i++) {
		c->owner[i] = NOBODY;
		c->next[i] = i;
	}
	return 0;
}

/* The first piece at or after @at without an owner; the last cut, where no piece begins, stays so.
 */
static size_t next_free(struct canvas *c, size_t at)
{
	while (c->next[at] != at) {
		c->next[at] = c->next[c->next[at]]; /* shorten the way for the next time */
		at = c->next[at];
	}
	return at;
}

static void paint(struct canvas *c, const struct dwunw_mapping *map, size_t number)
{
	const uint64_t *first =
		bsearch(&map->start, c->cuts, c->nr_cuts, sizeof(*c->cuts), compare_cuts);
	size_t at = next_free(c, (size_t)(first - c->cuts));

	while (c->cuts[at] < map->end) {
		c->owner[at] = number;
		c->next[at] = at + 1;
		at = next_free(c, at);
	}
}

static bool is_foreign(uint32_t module)
{
	return module & DWUNW_FOREIGN_MODULE && module != DWUNW_NO_MODULE;
}

static struct dwunw_segment segment_of(struct dwunw *dw, const struct dwunw_mapping *map)
{
	struct dwunw_module *module = dwunw_module_get(dw, map->module);
	struct dwunw_segment segment = {.number = DWUNW_NO_MODULE, .flags = map->flags};

	if (is_foreign(map->module)) {
		segment.number = map->module;
		segment.bias = map->start - map->file_offset;
		return segment;
	}
	/* Part of a file that no segment loads there: no address of the file is known. */
	if (!module || !dwunw_module_bias(module, map, &segment.bias))
		return segment;
	segment.module = module;
	segment.number = map->module;
	return segment;
}

static void take_segments(struct dwunw_space *space, const struct canvas *c, struct dwunw *dw,
			  const struct dwunw_mapping *maps)
{
	for (size_t i = 0; i < c->nr_cuts; i++) {
		struct dwunw_segment *segment = &space->segments[space->nr];

		if (c->owner[i] == NOBODY)
			continue;
		if (i && c->owner[i] == c->owner[i - 1]) {
			segment[-1].end = c->cuts[i + 1];
			continue;
		}
		*segment = segment_of(dw, &maps[c->owner[i]]);
		space->generated |= segment->flags & DWUNW_MAPPING_GENERATED;
		space->named |= segment->flags & DWUNW_MAPPING_FUNCTION;
		segment->start = c->cuts[i];
		segment->end = c->cuts[i + 1];
		space->nr++;
	}
}

static int fill(struct dwunw_space *space, struct dwunw *dw, const struct dwunw_mapping *maps,
		size_t nr_maps)
{
	struct canvas c = {0};
	int err = canvas_init(&c, maps, nr_maps);

	for (size_t i = nr_maps; !err && i-- > 0;)
		paint(&c, &maps[i], i);
	space->segments = err ? NULL : calloc(c.nr_cuts, sizeof(*space->segments));
	if (space->segments)
		take_segments(space, &c, dw, maps);
	else
		err = -ENOMEM;
	canvas_release(&c);
	return err;
}

int dwunw_space_new(struct dwunw_space **out, struct dwunw *dw, const struct dwunw_mapping *maps,
		    size_t nr_maps)
{
	struct dwunw_space *space;
	int err = 0;

	*out = NULL;
	for (size_t i = 0; i < nr_maps; i++)
		if (maps[i].end < maps[i].start || (!(maps[i].module & DWUNW_FOREIGN_MODULE) &&
						    !dwunw_module_get(dw, maps[i].module)))
			return -EINVAL;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->dw = dw;
	space->stacks = dw->stacks;
	space->serial = ++space->stacks->nr_spaces;
	if (nr_maps)
		err = fill(space, dw, maps, nr_maps);
	if (err)
		dwunw_space_free(space);
	else
		*out = space;
	return err;
}

void dwunw_space_free(struct dwunw_space *space)
{
	if (!space)
		return;
	dwunw_pc_cache_release(&space->pcs);
	free(space->segments);
	free(space);
}

const struct dwunw_segment *dwunw_space_find(struct dwunw_space *space, uint64_t addr)
{
	const struct dwunw_segment *all = space->segments;
	size_t low = 0, high = space->nr;

	if (!high)
		return NULL;
	if (addr - all[space->last].start < all[space->last].end - all[space->last].start)
		return &all[space->last];
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (all[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == space->nr || addr < all[low].start)
		return NULL;
	space->last = low;
	return &all[low];
}

const struct dwunw_segment *dwunw_space_generated(struct dwunw_space *space, uint64_t pc,
						  uint32_t as)
{
	const struct dwunw_segment *segment =
		space->generated ? dwunw_space_find(space, pc - !!(as & DWUNW_PC_RETURN)) : NULL;

	return segment && segment->flags & DWUNW_MAPPING_GENERATED ? segment : NULL;
}

bool dwunw_space_keeps_pointer(struct dwunw_space *space, uint64_t pc, uint32_t as)
{
	const uint64_t at = pc - !!(as & DWUNW_PC_RETURN);
	const struct dwunw_segment *segment = dwunw_space_find(space, at);
	struct dwunw_module *module = segment ? segment->module : NULL;

	return module && dwunw_builtins_have(&module->builtins, module->elf, at - segment->bias);
}
