/* heap.c - see heap.h */
#include "format/record/heap.h"

#include <errno.h>
#include <stdlib.h>

#include "format/record/records.h"

#define COLUMNS	  4 /* of blocks: addresses, sizes, states, first words */
#define MIN_ARENA 2 /* bytes that one takes at least */

/* Do the blocks and arenas of @heap ascend? */
static bool is_in_order(const struct mlk_heap *heap)
{
	uint64_t end = 0;

	for (size_t i = 0; i < heap->nr; end = heap->blocks[i].address + heap->blocks[i].size, i++)
		if (heap->blocks[i].address % 8 || heap->blocks[i].address < end ||
		    heap->blocks[i].size > UINT64_MAX - heap->blocks[i].address ||
		    heap->blocks[i].state >= MLK_HEAP_STATES)
			return false;
	return true;
}

static void encode_block(struct mlk_enc *columns, const struct mlk_heap_block *block,
			 const struct mlk_heap_block *before)
{
	uint64_t end = before ? before->address + before->size : 0;

	mlk_enc_uvar(&columns[0], block->address - end);
	mlk_enc_uvar(&columns[1], block->size);
	mlk_enc_u8(&columns[2], block->state);
	mlk_enc_delta(&columns[3], block->first, before ? before->first : 0);
}

int mlk_heap_encode(struct mlk_enc *e, const struct mlk_heap *heap)
{
	struct mlk_enc columns[COLUMNS] = {{0}};

	if (heap->nr > MLK_MAX_HEAP_BLOCKS || heap->nr_arenas > MLK_MAX_HEAP_ARENAS ||
	    heap->end_ns < heap->begin_ns || mlk_str_too_long(heap->allocator) ||
	    !is_in_order(heap))
		return -EINVAL;
	mlk_enc_uvar(e, heap->tgid);
	mlk_enc_uvar(e, heap->snapshot);
	mlk_enc_uvar(e, heap->flags);
	mlk_enc_str(e, heap->allocator);
	mlk_enc_u64(e, heap->begin_ns);
	mlk_enc_uvar(e, heap->end_ns - heap->begin_ns);
	mlk_enc_uvar(e, heap->unwalked);
	mlk_enc_uvar(e, heap->nr_arenas);
	for (size_t i = 0; i < heap->nr_arenas; i++) {
		mlk_enc_uvar(e, heap->arenas[i].address);
		mlk_enc_uvar(e, heap->arenas[i].length);
	}
	mlk_enc_uvar(e, heap->nr);
	for (size_t i = 0; i < heap->nr; i++)
		encode_block(columns, &heap->blocks[i], i ? &heap->blocks[i - 1] : NULL);
	mlk_enc_columns(e, columns, COLUMNS);
	for (size_t i = 0; i < COLUMNS; i++)
		mlk_enc_release(&columns[i]);
	return 0;
}

static int make_room(void **room, size_t nr, size_t size)
{
	void *bigger = realloc(*room, (nr + 1) * size);

	if (!bigger)
		return -ENOMEM;
	*room = bigger;
	return 0;
}

static int decode_arenas(struct mlk_dec *d, struct mlk_heap_room *room, struct mlk_heap *heap)
{
	uint64_t nr = mlk_dec_uvar_max(d, MLK_MAX_HEAP_ARENAS);

	if (d->bad || nr > (uint64_t)(d->end - d->at) / MIN_ARENA)
		return MLK_E_CORRUPT;
	if (make_room((void **)&room->arenas, (size_t)nr, sizeof(*room->arenas)))
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		room->arenas[i].address = mlk_dec_uvar(d);
		room->arenas[i].length = mlk_dec_uvar_max(d, UINT64_MAX - room->arenas[i].address);
	}
	heap->arenas = room->arenas;
	heap->nr_arenas = (size_t)nr;
	return d->bad ? MLK_E_CORRUPT : 0;
}

static int decode_blocks(struct mlk_dec *d, struct mlk_heap_room *room, struct mlk_heap *heap)
{
	struct mlk_dec columns[COLUMNS];
	uint64_t nr = mlk_dec_uvar_max(d, MLK_MAX_HEAP_BLOCKS), end = 0, first = 0;

	if (d->bad || nr > (uint64_t)(d->end - d->at) / COLUMNS)
		return MLK_E_CORRUPT;
	(void)mlk_dec_columns(d, columns, COLUMNS);
	if (d->bad)
		return MLK_E_CORRUPT;
	if (make_room((void **)&room->blocks, (size_t)nr, sizeof(*room->blocks)))
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct mlk_heap_block *b = &room->blocks[i];

		b->address = end + mlk_dec_uvar_max(&columns[0], UINT64_MAX - end);
		b->size = mlk_dec_uvar_max(&columns[1], UINT64_MAX - b->address);
		b->state = mlk_dec_u8(&columns[2]);
		b->first = first = mlk_dec_delta(&columns[3], first);
		end = b->address + b->size;
		if (columns[0].bad || columns[1].bad || columns[2].bad || columns[3].bad ||
		    b->address % 8)
			return MLK_E_CORRUPT;
	}
	heap->blocks = room->blocks;
	heap->nr = (size_t)nr;
	return 0;
}

int mlk_heap_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_heap_room *room,
		    struct mlk_heap *heap)
{
	int err;

	heap->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	heap->snapshot = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	heap->flags = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	heap->allocator = mlk_decode_str(d, text);
	heap->begin_ns = mlk_dec_u64(d);
	heap->end_ns = heap->begin_ns + mlk_dec_uvar_max(d, UINT64_MAX - heap->begin_ns);
	heap->unwalked = mlk_dec_uvar(d);
	if (d->bad)
		return MLK_E_CORRUPT;
	err = decode_arenas(d, room, heap);
	return err ? err : decode_blocks(d, room, heap);
}

void mlk_heap_room_release(struct mlk_heap_room *room)
{
	free(room->blocks);
	free(room->arenas);
	*room = (struct mlk_heap_room){0};
}
