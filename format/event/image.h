/* image.h - words of a thread's stack that writer and reader both hold, doc/trace-format.md 4.4.2
 *
 * Writer and reader keep the same images for each thread and change them by the same rules, so that
 * only the words which changed since the thread's last event need be stored.
 */
#ifndef MLK_IMAGE_H
#define MLK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLK_WORD      8u      /* bytes; words are at multiples of this */
#define MLK_BLOCK     128u    /* bytes of a slice, as it is compared */
#define MLK_IMAGE_MAX 131072u /* bytes an image holds at most */

/* The bytes of a stack that are held.  All zero: none. */
struct mlk_image {
	uint8_t *bytes;	 /* the byte at address a is bytes[a - base] */
	size_t room;	 /* bytes there are */
	uint64_t base;	 /* address of bytes[0] */
	uint64_t lo, hi; /* range held, [lo, hi), multiples of MLK_WORD; empty when equal */
};

/* Empty the image; its memory stays. */
void mlk_image_reset(struct mlk_image *im);
void mlk_image_release(struct mlk_image *im);

/*
 * Make the range hold [@lo, @hi), multiples of MLK_WORD, at most MLK_MAX_STACK + MLK_BLOCK apart:
 * by the rule of the specification the image is emptied first, or the range grows.  What is new in
 * the range is zero.  Returns 1 when what was held is held still, 0 when the image was emptied, or
 * -ENOMEM (the image is then empty).
 */
int mlk_image_extend(struct mlk_image *im, uint64_t lo, uint64_t hi);

/* The bytes of @addr, which must be held. */
static inline uint8_t *mlk_image_at(const struct mlk_image *im, uint64_t addr)
{
	return im->bytes + (addr - im->base);
}

#endif
