/* image.c - the threads of a chunk, and for each a window onto its stack, that grows downwards most
 * of the time
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/event/events.h"

void mlk_image_reset(struct mlk_image *im)
{
	im->lo = im->hi = im->base = 0;
}

void mlk_image_release(struct mlk_image *im)
{
	free(im->bytes);
	memset(im, 0, sizeof(*im));
}

/* Memory for [@lo, @hi), with what is held in its place.  The range is at the upper end: stacks
 * grow downwards, and so there is room for the next event's. */
static int make_room(struct mlk_image *im, uint64_t lo, uint64_t hi)
{
	size_t need = (size_t)(hi - lo), room = im->room ? im->room : 1024;
	uint64_t base;
	uint8_t *bytes;

	if (im->room && lo >= im->base && hi - im->base <= im->room)
		return 0;
	while (room < need + need / 4)
		room *= 2;
	base = hi - room;
	bytes = malloc(room);
	if (!bytes)
		return -ENOMEM;
	if (im->hi > im->lo)
		memcpy(bytes + (im->lo - base), mlk_image_at(im, im->lo),
		       (size_t)(im->hi - im->lo));
	free(im->bytes);
	im->bytes = bytes;
	im->room = room;
	im->base = base;
	return 0;
}

int mlk_image_extend(struct mlk_image *im, uint64_t lo, uint64_t hi)
{
	uint64_t all_lo = lo < im->lo ? lo : im->lo;
	uint64_t all_hi = hi > im->hi ? hi : im->hi;
	int kept = 1;

	if (im->lo == im->hi || lo > im->hi || hi < im->lo || all_hi - all_lo > MLK_IMAGE_MAX) {
		im->lo = im->hi = all_lo = lo;
		all_hi = hi;
		kept = 0;
		/* Nothing is held, so the memory can be anywhere. */
		im->base = im->room >= hi - lo ? hi - im->room : 0;
		if (!im->base)
			im->room = 0;
	}
	if (make_room(im, all_lo, all_hi)) {
		mlk_image_reset(im);
		return -ENOMEM;
	}
	memset(mlk_image_at(im, all_lo), 0, (size_t)(im->lo - all_lo));
	memset(mlk_image_at(im, im->hi), 0, (size_t)(all_hi - im->hi));
	im->lo = all_lo;
	im->hi = all_hi;
	return kept;
}

struct mlk_stream *mlk_stream_add(struct mlk_stream **streams, size_t *nr, size_t *room,
				  const uint32_t id[2])
{
	const size_t before = *room;
	struct mlk_stream *s;

	if (grow_array(streams, *nr, room, sizeof(*s)))
		return NULL;
	memset(*streams + before, 0, (*room - before) * sizeof(*s));
	s = &(*streams)[(*nr)++];
	s->tgid = id[0];
	s->tid = id[1];
	s->end = 0;
	memset(s->regs, 0, sizeof(s->regs));
	mlk_image_reset(&s->image);
	mlk_image_reset(&s->raw);
	return s;
}

void mlk_streams_trim(struct mlk_stream *streams, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		mlk_image_release(&streams[i].image);
		mlk_image_release(&streams[i].raw);
	}
}

int mlk_append(uint64_t **list, size_t *nr, size_t *room, uint64_t value)
{
	if (*nr == *room && grow_array(list, *nr, room, sizeof(value)))
		return -ENOMEM;
	(*list)[(*nr)++] = value;
	return 0;
}
