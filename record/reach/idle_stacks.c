/* idle_stacks.c - the stacks of threads that have ended, see idle.h
 *
 * What a thread has left on its stack and in its descriptor would hold blocks until a later thread
 * gets the stack.  glibc has three lists of descriptors, one behind the other in ld.so's data: used
 * stacks, those that the program has made, and kept ones (_dl_stack_used, _dl_stack_user and
 * _dl_stack_cache in sysdeps/generic/ldsodefs.h).
 */
#include "record/reach/idle.h"

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
#define HEAD_BYTES   16

/* A list's head or link, and what stands behind it in a descriptor. */
struct link {
	uint64_t next, previous;
	int32_t tid; /* 0: the kernel says that the thread has ended; -1: it was joined, too */
};

/* Is @link that of a descriptor? */
static bool is_descriptor(const struct idle_memory *m, uint64_t link)
{
	const uint64_t descriptor = link - LIST;
	uint64_t words[SELF / 8 + 1];

	return link > LIST && !m->read(m->arg, descriptor, words, sizeof(words)) &&
	       words[0] == descriptor && words[SELF / 8] == descriptor;
}

/* Are the @heads at @address lists of descriptors, of which the second has some, as it has that of
 * the main thread? */
static bool are_heads(const struct idle_memory *m, const uint64_t *heads, uint64_t address)
{
	for (size_t i = 0; i < HEADS; i++, heads += 2) {
		const uint64_t head = address + i * HEAD_BYTES;
		const bool empty = heads[0] == head;

		if (empty != (heads[1] == head) || (empty && i == 1))
			return false;
		if (!empty && (!is_descriptor(m, heads[0]) || !is_descriptor(m, heads[1])))
			return false;
	}
	return true;
}

/* The address of the three lists; 0: they are not there. */
static uint64_t find_heads(const struct idle_memory *m, const struct mlk_range *data)
{
	const uint64_t bytes = data->end - data->start;
	uint64_t *words, heads = 0;

	if (bytes > LOADERS_DATA)
		return 0;
	words = malloc(bytes);
	if (words && !m->read(m->arg, data->start, words, bytes))
		for (size_t i = 0; (i + HEADS * 2) * 8 <= bytes && !heads; i++)
			if (are_heads(m, words + i, data->start + i * 8))
				heads = data->start + i * 8;
	free(words);
	return heads;
}

static bool is_loaders_data(const struct mlk_range *r)
{
	const char *name = r->path ? strrchr(r->path, '/') : NULL;

	return name && r->perms & MLK_PERM_W && !strncmp(name, "/ld-linux-", 10);
}

/* The stack that ends with @descriptor.  The word between the two that point to the descriptor
 * holds memory of thread-local variables, which the later thread gets, too. */
static int add_stack(struct idle *idle, const struct idle_memory *m, uint64_t descriptor)
{
	const struct mlk_range *r = idle_range_of(m, descriptor);
	const uint64_t in_page = PAGE - 1, end = (descriptor + DESCRIPTOR + in_page) & ~in_page;
	uint64_t start = descriptor & ~in_page;
	int err;

	if (!r || !idle_is_anonymous(r))
		return 0;
	/* without guard pages other memory may lie below, in the same mapping */
	if (r == m->ranges || r[-1].end != r->start)
		start = r->start;
	err = idle_add(idle, start, descriptor);
	return err ? err : idle_add(idle, descriptor + SELF, end < r->end ? end : r->end);
}

static int add_thread(struct idle_threads *threads, uint64_t descriptor)
{
	if (grow_array(&threads->descriptors, threads->nr, &threads->room,
		       sizeof(*threads->descriptors)))
		return -ENOMEM;
	threads->descriptors[threads->nr++] = descriptor;
	return 0;
}

/* Follow the list at @head, that of kept stacks or, with @threads, of others.  One that changes
 * meanwhile is left where it does not fit. */
static int follow_list(struct idle *idle, const struct idle_memory *m, uint64_t head,
		       struct idle_threads *threads)
{
	uint64_t at = head;
	struct link link;
	int err = 0;

	for (size_t i = 0; i < MOST_STACKS && !err; i++) {
		const uint64_t before = at;

		if (m->read(m->arg, at, &link, sizeof(link)) || link.next == head)
			break;
		at = link.next;
		if (!is_descriptor(m, at) || m->read(m->arg, at, &link, sizeof(link)) ||
		    link.previous != before)
			break;
		if (threads)
			err = add_thread(threads, at - LIST);
		else if (link.tid <= 0)
			err = add_stack(idle, m, at - LIST);
	}
	return err;
}

int idle_stacks(struct idle *idle, const struct idle_memory *memory, struct idle_threads *threads)
{
	uint64_t heads = 0;
	int err;

	for (size_t i = 0; i < memory->nr && !heads; i++)
		if (is_loaders_data(&memory->ranges[i]))
			heads = find_heads(memory, &memory->ranges[i]);
	if (!heads)
		return 0;
	err = follow_list(idle, memory, heads, threads);
	if (!err)
		err = follow_list(idle, memory, heads + HEAD_BYTES, threads);
	return err ? err : follow_list(idle, memory, heads + 2 * HEAD_BYTES, NULL);
}
