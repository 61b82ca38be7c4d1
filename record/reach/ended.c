/* ended.c - see ended.h
 *
 * What a thread has left on its stack and in its descriptor would hold blocks until a later thread
 * gets the stack.  glibc has three lists of descriptors, one behind the other in ld.so's data: used
 * stacks, those that the program has made, and kept ones (_dl_stack_used, _dl_stack_user and
 * _dl_stack_cache in sysdeps/generic/ldsodefs.h).
 */
#include "record/reach/ended.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "format/trace.h"

/* struct pthread of x86-64 (nptl/descr.h): a word that points to itself, the thread's own vector of
 * thread-local memory, the former again; then, behind the padding of its header, the list and the
 * thread's number. */
#define SELF 16
#define LIST 0x2c0
#define DESCRIPTOR                                                                    \
	0x700 /* bytes, at least; a stack ends with the page that its descriptor does \
	       */

#define PAGE	     4096u
#define MOST_STACKS  4096	 /* a list that is longer is none */
#define LOADERS_DATA (64u << 10) /* bytes, at most */
#define HEADS	     3

/* A list's head or link, and what stands behind it in a descriptor. */
struct link {
	uint64_t next, previous;
	int32_t tid; /* 0: the kernel says that the thread has ended; -1: it was joined, too */
};

static int read_memory(const struct ended_memory *m, uint64_t address, void *to, size_t bytes)
{
	return m->read(m->arg, address, to, bytes);
}

/* Is @link that of a descriptor? */
static bool is_descriptor(const struct ended_memory *m, uint64_t link)
{
	const uint64_t descriptor = link - LIST;
	uint64_t words[SELF / 8 + 1];

	return link > LIST && !read_memory(m, descriptor, words, sizeof(words)) &&
	       words[0] == descriptor && words[SELF / 8] == descriptor;
}

/* Are the @heads at @address lists of descriptors, of which the second has some, as it has that of
 * the main thread? */
static bool are_heads(const struct ended_memory *m, const uint64_t *heads, uint64_t address)
{
	for (size_t i = 0; i < HEADS; i++, heads += 2) {
		const uint64_t head = address + i * 16;
		const bool empty = heads[0] == head;

		if (empty != (heads[1] == head) || (empty && i == 1))
			return false;
		if (!empty && (!is_descriptor(m, heads[0]) || !is_descriptor(m, heads[1])))
			return false;
	}
	return true;
}

/* The address of the list of kept stacks; 0: there is none. */
static uint64_t find_kept(const struct ended_memory *m, const struct mlk_range *data)
{
	const uint64_t bytes = data->end - data->start;
	uint64_t *words, kept = 0;

	if (bytes > LOADERS_DATA)
		return 0;
	words = malloc(bytes);
	if (words && !read_memory(m, data->start, words, bytes))
		for (size_t i = 0; (i + HEADS * 2) * 8 <= bytes && !kept; i++)
			if (are_heads(m, words + i, data->start + i * 8))
				kept = data->start + i * 8 + (HEADS - 1) * 16;
	free(words);
	return kept;
}

static bool is_loaders_data(const struct mlk_range *r)
{
	const char *name = r->path ? strrchr(r->path, '/') : NULL;

	return name && r->perms & MLK_PERM_W && !strncmp(name, "/ld-linux-", 10);
}

static const struct mlk_range *range_of(const struct mlk_range *ranges, size_t nr, uint64_t address)
{
	for (size_t i = 0; i < nr; i++)
		if (ranges[i].start <= address && address < ranges[i].end)
			return &ranges[i];
	return NULL;
}

static int add_area(struct ended_stacks *stacks, uint64_t start, uint64_t end)
{
	if (start >= end)
		return 0;
	if (grow_array(&stacks->v, stacks->nr, &stacks->room, sizeof(*stacks->v)))
		return -ENOMEM;
	stacks->v[stacks->nr++] = (struct ended_area){start, end};
	return 0;
}

/* The stack that ends with @descriptor.  The word between the two that point to the descriptor
 * holds memory of thread-local variables, which the later thread gets, too. */
static int add_stack(struct ended_stacks *stacks, const struct mlk_range *ranges, size_t nr,
		     uint64_t descriptor)
{
	const struct mlk_range *r = range_of(ranges, nr, descriptor);
	const uint64_t in_page = PAGE - 1, end = (descriptor + DESCRIPTOR + in_page) & ~in_page;
	uint64_t start = descriptor & ~in_page;
	int err;

	if (!r || (r->path && r->path[0]))
		return 0;
	/* without guard pages other memory may lie below, in the same mapping */
	if (r == ranges || r[-1].end != r->start)
		start = r->start;
	err = add_area(stacks, start, descriptor);
	return err ? err : add_area(stacks, descriptor + SELF, end < r->end ? end : r->end);
}

static int by_start(const void *a, const void *b)
{
	const struct ended_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Follow the list @kept.  One that changes meanwhile is left where it does not fit. */
static int follow_list(struct ended_stacks *stacks, const struct ended_memory *m,
		       const struct mlk_range *ranges, size_t nr, uint64_t kept)
{
	uint64_t at = kept;
	struct link link;
	int err = 0;

	for (size_t i = 0; i < MOST_STACKS && !err; i++) {
		const uint64_t before = at;

		if (read_memory(m, at, &link, sizeof(link)) || link.next == kept)
			break;
		at = link.next;
		if (!is_descriptor(m, at) || read_memory(m, at, &link, sizeof(link)) ||
		    link.previous != before)
			break;
		if (link.tid <= 0)
			err = add_stack(stacks, ranges, nr, at - LIST);
	}
	if (stacks->nr)
		qsort(stacks->v, stacks->nr, sizeof(*stacks->v), by_start);
	return err;
}

int ended_find(struct ended_stacks *stacks, const struct ended_memory *memory,
	       const struct mlk_range *ranges, size_t nr)
{
	*stacks = (struct ended_stacks){0};
	for (size_t i = 0; i < nr; i++) {
		uint64_t kept = is_loaders_data(&ranges[i]) ? find_kept(memory, &ranges[i]) : 0;

		if (kept)
			return follow_list(stacks, memory, ranges, nr, kept);
	}
	return 0;
}

void ended_release(struct ended_stacks *stacks)
{
	free(stacks->v);
	*stacks = (struct ended_stacks){0};
}
