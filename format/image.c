/* image.c - a window onto a thread's stack, addressed modulo its size */
#include "format/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mlk_image_reset(struct mlk_image *im)
{
	im->lo = im->hi = 0;
}

void mlk_image_release(struct mlk_image *im)
{
	free(im->bytes);
	memset(im, 0, sizeof(*im));
}

/* Bytes from @addr to where the buffer wraps, at most @len. */
static size_t run(const struct mlk_image *im, uint64_t addr, size_t len)
{
	size_t till_wrap = im->room - (addr & (im->room - 1));

	return len < till_wrap ? len : till_wrap;
}

bool mlk_image_equal(const struct mlk_image *im, uint64_t addr, const uint8_t *bytes, size_t len)
{
	size_t first = run(im, addr, len);

	return !memcmp(im->bytes + (addr & (im->room - 1)), bytes, first) &&
	       !memcmp(im->bytes, bytes + first, len - first);
}

void mlk_image_put(struct mlk_image *im, uint64_t addr, const uint8_t *bytes, size_t len)
{
	size_t first = run(im, addr, len);

	memcpy(im->bytes + (addr & (im->room - 1)), bytes, first);
	memcpy(im->bytes, bytes + first, len - first);
}

void mlk_image_get(const struct mlk_image *im, uint64_t addr, uint8_t *bytes, size_t len)
{
	size_t first = run(im, addr, len);

	memcpy(bytes, im->bytes + (addr & (im->room - 1)), first);
	memcpy(bytes + first, im->bytes, len - first);
}

/* Make room for @len bytes, keeping those that are held. */
static int grow(struct mlk_image *im, size_t len)
{
	struct mlk_image wider = {.room = im->room ? im->room : 1024, .lo = im->lo, .hi = im->hi};

	while (wider.room < len)
		wider.room *= 2;
	if (wider.room == im->room)
		return 0;
	wider.bytes = malloc(wider.room);
	if (!wider.bytes)
		return -ENOMEM;
	for (uint64_t at = im->lo; at < im->hi;) {
		size_t part = run(im, at, (size_t)(im->hi - at));

		mlk_image_put(&wider, at, im->bytes + (at & (im->room - 1)), part);
		at += part;
	}
	free(im->bytes);
	*im = wider;
	return 0;
}

int mlk_image_extend(struct mlk_image *im, uint64_t lo, uint64_t hi, uint64_t *held_lo,
		     uint64_t *held_hi)
{
	uint64_t all_lo = lo < im->lo ? lo : im->lo;
	uint64_t all_hi = hi > im->hi ? hi : im->hi;
	int err;

	if (im->lo == im->hi || lo > im->hi || hi < im->lo || all_hi - all_lo > MLK_IMAGE_MAX) {
		im->lo = im->hi = lo;
		all_lo = lo;
		all_hi = hi;
	}
	err = grow(im, (size_t)(all_hi - all_lo));
	if (err) {
		mlk_image_reset(im);
		return err;
	}
	*held_lo = im->lo;
	*held_hi = im->hi;
	im->lo = all_lo;
	im->hi = all_hi;
	return 0;
}
