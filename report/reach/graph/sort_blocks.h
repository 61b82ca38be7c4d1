/* sort_blocks.h - millions of blocks in the order of their addresses */
#ifndef REPORT_SORT_BLOCKS_H
#define REPORT_SORT_BLOCKS_H

#include "report/reach/graph/block_index.h"

/* Sort @blocks, @nr of them, by their beginnings. */
void sort_blocks(struct reach_block *blocks, size_t nr);

#endif
