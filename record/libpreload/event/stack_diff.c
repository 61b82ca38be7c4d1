/* stack_diff.c - what of a stack has changed since the thread's last event
 *
 * Every slice up to the stack's end is compared: frames far up may have changed since, and an
 * unwinder must see what was there at this event.  32 bytes at a time, a KiB to a test, take 9 ns a
 * KiB, which is two loads a clock; 64 take as long.
 */
#include <immintrin.h>

#include "record/libpreload/event/block_digest.h"

static const uint8_t *image_at(const uint8_t *image, uint64_t addr)
{
	return image + (addr & (PRELOAD_WINDOW - 1));
}

static uint32_t compare_sse2(struct preload_known *k, uint64_t a, uint64_t b, uint16_t *changed,
			     uint32_t first)
{
	uint32_t nr = 0;

	for (uint32_t i = first; a < b; a += PRELOAD_SLICE, i++) {
		const __m128i *x = (const __m128i *)a;
		const __m128i *y = (const __m128i *)image_at(k->bytes, a);
		__m128i d = _mm_setzero_si128();

		for (int k = 0; k < 8; k++)
			d = _mm_or_si128(d, _mm_xor_si128(x[k], y[k]));
		changed[nr] = (uint16_t)i;
		nr += _mm_movemask_epi8(_mm_cmpeq_epi8(d, _mm_setzero_si128())) != 0xffff;
	}
	return nr;
}

/* Are @nr slices, known at compile time, as they were? */
__attribute__((target("avx2"), always_inline)) static inline bool same_avx2(const uint8_t *image,
									    uint64_t a, int nr)
{
	const __m256i *x = (const __m256i *)a;
	const __m256i *y = (const __m256i *)image_at(image, a);
	__m256i d0 = _mm256_xor_si256(x[0], y[0]), d1 = _mm256_xor_si256(x[1], y[1]);
	__m256i d2 = _mm256_xor_si256(x[2], y[2]), d3 = _mm256_xor_si256(x[3], y[3]);

#pragma GCC unroll 8
	for (int i = 4; i < nr * 4; i += 4) {
		d0 = _mm256_or_si256(d0, _mm256_xor_si256(x[i], y[i]));
		d1 = _mm256_or_si256(d1, _mm256_xor_si256(x[i + 1], y[i + 1]));
		d2 = _mm256_or_si256(d2, _mm256_xor_si256(x[i + 2], y[i + 2]));
		d3 = _mm256_or_si256(d3, _mm256_xor_si256(x[i + 3], y[i + 3]));
	}
	d0 = _mm256_or_si256(_mm256_or_si256(d0, d1), _mm256_or_si256(d2, d3));
	return _mm256_testz_si256(d0, d0);
}

/* Slice by slice up to @b.  Returns where the next index goes. */
__attribute__((target("avx2"), always_inline)) static inline uint16_t *each_avx2(
	const uint8_t *image, uint64_t a, uint64_t b, uint16_t *changed, uint32_t i)
{
	for (; a < b; a += PRELOAD_SLICE, i++) {
		*changed = (uint16_t)i;
		changed += !same_avx2(image, a, 1);
	}
	return changed;
}

/* Is a block zero? */
__attribute__((target("avx2"), always_inline)) static inline bool is_zero_avx2(uint64_t a)
{
	const __m256i *x = (const __m256i *)a;
	__m256i d0 = x[0], d1 = x[1];

#pragma GCC unroll 8
	for (uint32_t i = 2; i < PRELOAD_BLOCK / 32; i += 2) {
		d0 = _mm256_or_si256(d0, x[i]);
		d1 = _mm256_or_si256(d1, x[i + 1]);
	}
	d0 = _mm256_or_si256(d0, d1);
	return _mm256_testz_si256(d0, d0);
}

/* Is a block as it was?  Of one that was zero only the stack is read. */
__attribute__((target("avx2"), always_inline)) static inline bool same_block_avx2(
	struct preload_known *k, uint64_t a)
{
	const uint64_t at = a & (PRELOAD_WINDOW - 1);
	uint8_t *quiet = &k->quiet[at / PRELOAD_BLOCK];

	if (*quiet == QUIET_ZERO)
		return is_zero_avx2(a);
	if (!same_avx2(k->bytes, a, PRELOAD_BLOCK / PRELOAD_SLICE))
		return false;
	if (UNLIKELY(*quiet < QUIET_SEEN) && ++*quiet == QUIET_SEEN &&
	    is_zero_avx2((uint64_t)(k->bytes + at)))
		*quiet = QUIET_ZERO;
	return true;
}

/* Near the stack pointer slices have changed, as a rule; from the fourth on mostly none has: by
 * blocks then. */
__attribute__((target("avx2"))) static uint32_t compare_avx2(struct preload_known *k, uint64_t a,
							     uint64_t b, uint16_t *changed,
							     uint32_t first)
{
	const uint64_t begin = a;
	uint64_t end = (a + 3 * PRELOAD_SLICE + PRELOAD_BLOCK - 1) & ~(uint64_t)(PRELOAD_BLOCK - 1);
	uint16_t *to = each_avx2(k->bytes, a, end < b ? end : b, changed, first);

	for (a = end; a < b; a = end) {
		end = a + PRELOAD_BLOCK;
		if (end > b)
			end = b;
		else if (LIKELY(same_block_avx2(k, a)))
			continue;
		to = each_avx2(k->bytes, a, end, to,
			       first + (uint32_t)((a - begin) / PRELOAD_SLICE));
	}
	return (uint32_t)(to - changed);
}

/* Blocks [@a, @b) of one span, one by one.  Returns where the next index goes; @a has index @i. */
__attribute__((target("avx2,vaes"))) static uint16_t *look_at_blocks(struct preload_known *k,
								     uint64_t a, uint64_t b,
								     uint16_t *to, uint32_t i)
{
	for (; a < b; a += PRELOAD_BLOCK, i += PRELOAD_BLOCK / PRELOAD_SLICE) {
		uint8_t *quiet = &k->quiet[block_digest(a)];

		if (!same_avx2(k->bytes, a, PRELOAD_BLOCK / PRELOAD_SLICE))
			to = each_avx2(k->bytes, a, a + PRELOAD_BLOCK, to, i);
		else if (*quiet < QUIET_SEEN)
			++*quiet;
	}
	return to;
}

/* The same of one span, of which mixed blocks are examined together. */
__attribute__((target("avx2,vaes"), always_inline)) static inline uint16_t *look_at_span(
	struct preload_known *k, uint64_t a, uint64_t b, uint16_t *to, uint32_t i)
{
	uint64_t mixed = a;

	while (mixed < b && k->quiet[block_digest(mixed)] != QUIET_MIXED)
		mixed += PRELOAD_BLOCK;
	if (a < mixed)
		to = look_at_blocks(k, a, mixed, to, i);
	if (mixed < b && UNLIKELY(!block_digest_same(k, mixed, b)))
		to = look_at_blocks(k, mixed, b, to, i + (uint32_t)(mixed - a) / PRELOAD_SLICE);
	if (a < mixed && k->quiet[block_digest(mixed - 1)] == QUIET_SEEN)
		block_digest_mix(k, mixed - PRELOAD_BLOCK, b);
	return to;
}

__attribute__((target("avx2,vaes"))) static uint32_t compare_vaes(struct preload_known *k,
								  uint64_t a, uint64_t b,
								  uint16_t *changed, uint32_t first)
{
	const uint64_t begin = a, top = b & ~(uint64_t)(PRELOAD_BLOCK - 1);
	uint64_t end = (a + 3 * PRELOAD_SLICE + PRELOAD_BLOCK - 1) & ~(uint64_t)(PRELOAD_BLOCK - 1);
	uint16_t *to = each_avx2(k->bytes, a, end < b ? end : b, changed, first);

	if (UNLIKELY(k->top != top))
		block_digest_set_top(k, top);
	for (a = end; a < top; a = end) {
		end = (a + QUIET_SPAN) & ~(uint64_t)(QUIET_SPAN - 1);
		end = end < top ? end : top;
		to = look_at_span(k, a, end, to, first + (uint32_t)((a - begin) / PRELOAD_SLICE));
	}
	if (a < b)
		to = each_avx2(k->bytes, a, b, to, first + (uint32_t)((a - begin) / PRELOAD_SLICE));
	return (uint32_t)(to - changed);
}

static uint32_t *write_sse2(uint8_t *known, const uint8_t *slice, uint32_t *to, uint32_t wanted,
			    uint32_t *mask)
{
	uint32_t *x = (uint32_t *)known;
	const uint32_t *y = (const uint32_t *)slice;
	uint32_t all = *mask;

	*mask = 0;
	for (uint32_t i = 0; i < PRELOAD_SLICE / 4; i++) {
		uint32_t value = __atomic_load_n(&y[i], __ATOMIC_RELAXED);
		bool give = wanted >> i & 1 && (value != x[i] || all >> i & 1);

		*to = value;
		to += give;
		x[i] = give ? value : x[i];
		*mask |= (uint32_t)give << i;
	}
	return to;
}

__attribute__((target("avx2,bmi"))) static uint32_t *write_avx2(uint8_t *known,
								const uint8_t *slice, uint32_t *to,
								uint32_t wanted, uint32_t *mask)
{
	uint32_t changed = *mask;

	for (int i = 0; i < 4; i++) {
		__m256i x = ((const __m256i *)known)[i], y = ((const __m256i *)slice)[i];
		__m256i same = _mm256_cmpeq_epi32(x, y);

		changed |= (~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(same)) & 0xff)
			   << 8 * i;
	}
	*mask = changed &= wanted;
	for (; changed; changed &= changed - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(changed);

		*to++ = ((uint32_t *)known)[i] =
			__atomic_load_n((const uint32_t *)slice + i, __ATOMIC_RELAXED);
	}
	return to;
}

__attribute__((target("avx512f,popcnt"))) static uint32_t *write_avx512(
	uint8_t *known, const uint8_t *slice, uint32_t *to, uint32_t wanted, uint32_t *mask)
{
	__m512i x0 = ((const __m512i *)known)[0], y0 = ((const __m512i *)slice)[0];
	__m512i x1 = ((const __m512i *)known)[1], y1 = ((const __m512i *)slice)[1];
	uint32_t low = _mm512_cmpneq_epi32_mask(x0, y0), high = _mm512_cmpneq_epi32_mask(x1, y1);
	uint32_t give = (low | high << 16 | *mask) & wanted;
	__mmask16 give0 = (__mmask16)give, give1 = (__mmask16)(give >> 16);

	*mask = give;
	((__m512i *)known)[0] = _mm512_mask_mov_epi32(x0, give0, y0);
	((__m512i *)known)[1] = _mm512_mask_mov_epi32(x1, give1, y1);
	/* into a register first: to memory it takes much longer */
	_mm512_storeu_si512(to, _mm512_maskz_compress_epi32(give0, y0));
	to += __builtin_popcount(give0);
	_mm512_storeu_si512(to, _mm512_maskz_compress_epi32(give1, y1));
	return to + __builtin_popcount(give1);
}

static enum { WIDTH_NONE, WIDTH_SSE2, WIDTH_AVX2, WIDTH_AVX512 } width; /* NONE: not looked yet */
static bool mixes;

static void find_width(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi"))
		width = WIDTH_SSE2;
	else /* VBMI2: not those that lower their clock for 64 bytes */
		width = __builtin_cpu_supports("avx512vbmi2") ? WIDTH_AVX512 : WIDTH_AVX2;
	mixes = width >= WIDTH_AVX2 && __builtin_cpu_supports("vaes");
}

uint32_t preload_compare(struct preload_known *k, uint64_t a, uint64_t b, uint16_t *changed,
			 uint32_t first)
{
	if (UNLIKELY(!width))
		find_width();
	if (LIKELY(mixes))
		return compare_vaes(k, a, b, changed, first);
	if (width >= WIDTH_AVX2)
		return compare_avx2(k, a, b, changed, first);
	return compare_sse2(k, a, b, changed, first);
}

uint32_t *preload_write(struct preload_known *k, uint64_t at, uint32_t *to, uint32_t wanted,
			uint32_t all, uint32_t *mask)
{
	uint8_t *known = k->bytes + (at & (PRELOAD_WINDOW - 1));

	block_digest_end(k, block_digest(at));
	*mask = all;
	if (UNLIKELY(!width))
		find_width();
	if (LIKELY(width == WIDTH_AVX512))
		return write_avx512(known, (const uint8_t *)at, to, wanted, mask);
	if (width == WIDTH_AVX2)
		return write_avx2(known, (const uint8_t *)at, to, wanted, mask);
	return write_sse2(known, (const uint8_t *)at, to, wanted, mask);
}
