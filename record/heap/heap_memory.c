/* heap_memory.c - see heap_memory.h */
#include "record/heap/heap_memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PRESENT (UINT64_C(3) << 62) /* of /proc/PID/pagemap: there, or swapped */

int heap_memory_read(const struct heap_memory *m, uint64_t address, void *to, size_t len)
{
	ssize_t got;

	if (address > INT64_MAX - len)
		return -EFAULT;
	do
		got = pread(m->mem, to, len, (off_t)address);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)len ? 0 : -EFAULT;
}

/* Is the page at @address in memory, or in swap? */
static bool has_page(const struct heap_memory *m, uint64_t address)
{
	uint64_t entry;

	return pread(m->pagemap, &entry, sizeof(entry),
		     (off_t)(address / HEAP_PAGE * sizeof(entry))) == sizeof(entry) &&
	       entry & PRESENT;
}

int heap_memory_read_present(const struct heap_memory *m, uint64_t address, void *to, size_t len)
{
	if (!len || address > INT64_MAX - len || !has_page(m, address) ||
	    (address % HEAP_PAGE + len > HEAP_PAGE && !has_page(m, address + len - 1)))
		return -EFAULT;
	return heap_memory_read(m, address, to, len);
}

int heap_memory_copy(const struct heap_memory *m, struct pages *pages, uint64_t address, void *to,
		     size_t len)
{
	const uint64_t end = address + len, mask = HEAP_PAGE - 1;
	uint64_t from, till;
	int more;

	if (address > INT64_MAX - len)
		return -EFAULT;
	memset(to, 0, len);
	pages_begin(pages, address & ~mask);
	while ((more = pages_next(pages, (end + mask) & ~mask, &from, &till)) > 0) {
		from = from < address ? address : from;
		till = till < end ? till : end;
		if (heap_memory_read(m, from, (uint8_t *)to + (from - address),
				     (size_t)(till - from)))
			return -EFAULT;
	}
	return more ? -EFAULT : 0;
}

/* How many bytes of pages from @address on, below @end, are alike: *@there, or not; anonymous ones
 * that are not there are zero.  What cannot be asked is there. */
static size_t alike(const struct heap_memory *m, uint64_t address, uint64_t end, bool *there)
{
	uint64_t entries[HEAP_WINDOW / HEAP_PAGE + 1];
	const uint64_t first = address / HEAP_PAGE;
	const size_t nr = (size_t)((end - 1) / HEAP_PAGE - first + 1);
	size_t i = 1;

	*there = true;
	if (pread(m->pagemap, entries, nr * 8, (off_t)(first * 8)) != (ssize_t)(nr * 8))
		return (size_t)(end - address);
	*there = entries[0] & PRESENT;
	while (i < nr && !(entries[i] & PRESENT) == !*there)
		i++;
	return i < nr ? (size_t)((first + i) * HEAP_PAGE - address) : (size_t)(end - address);
}

/* Read what of the window is in @range; pages that are not there stay so.  Returns its bytes. */
static size_t read_window(struct heap_memory *m, uint64_t address, const struct mlk_range *range)
{
	const size_t all =
		range->end - address < HEAP_WINDOW ? (size_t)(range->end - address) : HEAP_WINDOW;
	size_t done = 0;
	ssize_t got;
	bool there;

	while (done < all) {
		size_t len = alike(m, address + done, address + all, &there);

		/* those of a file have what that has */
		if (there || range->path[0] == '/') {
			got = pread(m->mem, m->window + done, len, (off_t)(address + done));
			done += got > 0 ? (size_t)got : 0;
			if (got != (ssize_t)len)
				break;
		} else {
			memset(m->window + done, 0, len);
			done += len;
		}
	}
	return done;
}

const uint8_t *heap_memory_peek(struct heap_memory *m, uint64_t address, size_t len)
{
	const struct mlk_range *range;
	ssize_t got;

	if (address >= m->at && address - m->at <= m->len && len <= m->len - (address - m->at))
		return m->window + (address - m->at);
	if (address > INT64_MAX - HEAP_WINDOW)
		return NULL;
	range = heap_memory_range(m, address);
	m->at = address;
	m->len = range ? read_window(m, address, range) : 0;
	if (len <= m->len)
		return m->window;
	/* it may have grown since its mappings were listed */
	got = pread(m->mem, m->window, len, (off_t)address);
	m->len = got > 0 ? (size_t)got : 0;
	return len <= m->len ? m->window : NULL;
}

void heap_memory_forget(struct heap_memory *m)
{
	m->len = 0;
}

const struct mlk_range *heap_memory_range(const struct heap_memory *m, uint64_t address)
{
	size_t low = 0, high = m->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < m->ranges[low - 1].end ? &m->ranges[low - 1] : NULL;
}

bool heap_memory_may_have(const struct heap_memory *m, uint64_t address)
{
	return heap_memory_range(m, address) ||
	       (m->brk_end && address >= m->brk_end && address - m->brk_end < HEAP_MOST_GROWN);
}

uint64_t heap_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}
