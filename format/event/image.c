/* image.c - a window onto a thread's stack, that grows downwards most of the time */
#include "format/event/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
