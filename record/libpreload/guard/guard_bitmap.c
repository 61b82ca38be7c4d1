/* guard_bitmap.c - a bit for each 16 bytes of the address space, in pieces made when they are
 * needed
 *
 * A piece is for 1 GiB of addresses.  Most of it is never touched; which pages were is noted, so
 * that a walk over all marks looks at no others.
 */
#include <sys/mman.h>

#include "record/libpreload/guard/guard.h"

#define REGION_SHIFT 30
#define NR_REGIONS   (1u << (47 - REGION_SHIFT))
#define NR_WORDS     (1u << (REGION_SHIFT - 4 - 6))
#define PAGE_WORDS   512u
#define NR_PAGES     (NR_WORDS / PAGE_WORDS)

struct region {
	uint64_t touched[NR_PAGES / 64]; /* pages of words */
	uint64_t words[NR_WORDS];
};

static struct region *regions[NR_REGIONS];

static struct region *region_of(uint64_t addr)
{
	uint64_t i = addr >> REGION_SHIFT;

	return i < NR_REGIONS ? __atomic_load_n(&regions[i], __ATOMIC_ACQUIRE) : NULL;
}

static uint32_t word_of(uint64_t addr)
{
	return (uint32_t)(addr >> 10) & (NR_WORDS - 1);
}

static uint64_t bit_of(uint64_t addr)
{
	return 1ull << (addr >> 4 & 63);
}

bool marks_cover(const void *block)
{
	uint64_t addr = (uint64_t)block;
	struct region *none = NULL, *made;

	if (LIKELY(region_of(addr) != NULL))
		return true;
	if (addr >> REGION_SHIFT >= NR_REGIONS || preload_no_calls())
		return false;
	made = preload_real.mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made == MAP_FAILED)
		return false;
	if (!__atomic_compare_exchange_n(&regions[addr >> REGION_SHIFT], &none, made, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		preload_real.munmap(made, sizeof(*made)); /* another thread was faster */
	return true;
}

void marks_set(const void *block)
{
	uint64_t addr = (uint64_t)block;
	struct region *r = region_of(addr);
	uint32_t word = word_of(addr), page = word / PAGE_WORDS;
	uint64_t *touched = &r->touched[page / 64];

	if (!(__atomic_load_n(touched, __ATOMIC_RELAXED) >> page % 64 & 1))
		__atomic_fetch_or(touched, 1ull << page % 64, __ATOMIC_RELAXED);
	__atomic_fetch_or(&r->words[word], bit_of(addr), __ATOMIC_SEQ_CST);
}

bool marks_clear(const void *block)
{
	uint64_t addr = (uint64_t)block, bit = bit_of(addr);
	struct region *r = region_of(addr);

	return r && __atomic_fetch_and(&r->words[word_of(addr)], ~bit, __ATOMIC_SEQ_CST) & bit;
}

bool marks_has(const void *block)
{
	uint64_t addr = (uint64_t)block;
	const struct region *r = region_of(addr);

	return r && !(addr & 15) &&
	       __atomic_load_n(&r->words[word_of(addr)], __ATOMIC_SEQ_CST) & bit_of(addr);
}

static void each_of_page(const uint64_t *words, uint64_t addr,
			 void (*visit)(uint8_t *addr, void *arg), void *arg)
{
	for (uint32_t i = 0; i < PAGE_WORDS; i++, addr += 1024)
		for (uint64_t bits = __atomic_load_n(&words[i], __ATOMIC_RELAXED); bits;
		     bits &= bits - 1)
			visit((uint8_t *)addr + 16 * (uint32_t)__builtin_ctzll(bits), arg);
}

void marks_each(void (*visit)(uint8_t *addr, void *arg), void *arg)
{
	for (uint64_t i = 0; i < NR_REGIONS; i++) {
		const struct region *r = region_of(i << REGION_SHIFT);

		for (uint32_t page = 0; r && page < NR_PAGES; page++)
			if (__atomic_load_n(&r->touched[page / 64], __ATOMIC_RELAXED) >> page % 64 &
			    1)
				each_of_page(r->words + page * PAGE_WORDS,
					     (i << REGION_SHIFT) + page * PAGE_WORDS * 1024ull,
					     visit, arg);
	}
}
