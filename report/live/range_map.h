/* range_map.h - blocks of mmap by the addresses they cover, which do not overlap */
#ifndef REPORT_RANGE_MAP_H
#define REPORT_RANGE_MAP_H

#include "report/live/block_map.h"

struct range_node;

/* All zero is an empty map. */
struct range_map {
	struct range_node *root;
};

/* First address behind @block. */
uint64_t range_end(const struct live_block *block);

/* Put a copy of @block in; it overlaps none that is there.  Returns 0 or -ENOMEM. */
int range_map_put(struct range_map *map, const struct live_block *block);

/* Take a block that overlaps [@start, @end), the last of them, out into *@block.  False: none does.
 */
bool range_map_take(struct range_map *map, uint64_t start, uint64_t end, struct live_block *block);

/* The first block at or behind @addr, valid until the map is changed, or NULL. */
const struct live_block *range_map_from(const struct range_map *map, uint64_t addr);

/* Release what @map holds and leave it empty. */
void range_map_release(struct range_map *map);

#endif
