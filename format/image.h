/* image.h - the bytes of a thread's stack that writer and reader both hold, doc/trace-format.md 4.4
 *
 * Writer and reader keep one for each thread and change it by the same rules, so that a block which
 * did not change since the thread's last event need not be stored.
 */
#ifndef MLK_IMAGE_H
#define MLK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLK_BLOCK     128u
#define MLK_IMAGE_MAX 131072u

struct mlk_image {
	uint8_t *bytes;	 /* the byte at address a stands at bytes[a & (room - 1)] */
	size_t room;	 /* a power of two, or 0 */
	uint64_t lo, hi; /* range held, [lo, hi); empty when equal */
};

/* Empty the image; its memory stays. */
void mlk_image_reset(struct mlk_image *im);
void mlk_image_release(struct mlk_image *im);

/*
 * Steps 1 and 2 of the rule: make the range hold [@lo, @hi), which must not wrap and be at most
 * MLK_MAX_STACK long.  *held_lo and *held_hi become the range that was held after step 1: bytes
 * outside of it are not known yet.  Returns 0 or -ENOMEM (the image is then empty).
 */
int mlk_image_extend(struct mlk_image *im, uint64_t lo, uint64_t hi, uint64_t *held_lo,
		     uint64_t *held_hi);

/* Bytes of the range [@addr, @addr + @len), which must be held: compare, put in, take out. */
bool mlk_image_equal(const struct mlk_image *im, uint64_t addr, const uint8_t *bytes, size_t len);
void mlk_image_put(struct mlk_image *im, uint64_t addr, const uint8_t *bytes, size_t len);
void mlk_image_get(const struct mlk_image *im, uint64_t addr, uint8_t *bytes, size_t len);

#endif
