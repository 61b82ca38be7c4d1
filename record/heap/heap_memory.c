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

const uint8_t *heap_memory_peek(struct heap_memory *m, uint64_t address, size_t len)
{
	ssize_t got;

	if (address >= m->at && address - m->at <= m->len && len <= m->len - (address - m->at))
		return m->window + (address - m->at);
	if (address > INT64_MAX - HEAP_WINDOW)
		return NULL;
	got = pread(m->mem, m->window, sizeof(m->window), (off_t)address);
	m->at = address;
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

uint64_t heap_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}
