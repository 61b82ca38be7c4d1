/* tcmalloc_cache.c - objects that are free in the caches of threads and of sizes, which the slabs
 * take for used: see tcmalloc.h
 *
 * A cache has a list for each size, through the first words of the objects, and its length.  While
 * it is followed a thread may take the first object and write to it; then what that points to is
 * none of the list's.  So a list must end after as many objects as it says.  If it changed, or if
 * it is not the same when it is followed once more, nothing is judged that is in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/heap/tcmalloc.h"

/* ThreadCache: one list for each size, and where it is in the list of all of them. */
#define LIST_BYTES  32
#define LIST_LENGTH 8
#define CACHE_NEXT  4144
#define CACHE_PREV  4152

/* CentralFreeList: chains of so many objects as are moved at once. */
#define CENTRAL_SLOTS 128
#define MOST_SLOTS    64
#define SLOT_BYTES    16
#define CENTRAL_USED  (CENTRAL_SLOTS + MOST_SLOTS * SLOT_BYTES)

#define MOST_CACHES 65536
#define MOST_LIST   16384 /* objects */
#define TRIES	    16

/* How certain it is that an object is free. */
enum certain {
	CERTAIN,
	CHANGES,
};

/* A list that is followed. */
struct trail {
	uint64_t page;
	uint8_t bytes[HEAP_PAGE]; /* what was there */
	uint64_t nodes[MOST_LIST];
};

/* Who wants to know of all that is cached. */
struct visitor {
	struct tcmalloc *t;
	const struct heap_memory *m;
	/* takes the object at @address of class @class */
	int (*cached)(void *arg, uint64_t address, unsigned int class, enum certain how);
	/* not all of a list of the class could be followed; NULL: nobody wants to know */
	void (*missed)(void *arg, unsigned int class);
	void *arg;
	bool twice; /* nobody looks again */
	struct trail *trail;
};

/* The first word of the object at @address, as it was when a word of its page was read. */
static bool read_link(const struct visitor *v, uint64_t address, uint64_t *next)
{
	const uint64_t page = address & ~(uint64_t)(HEAP_PAGE - 1);
	struct trail *t = v->trail;

	if (address % 8)
		return false;
	if (page != t->page) {
		t->page = 0;
		if (heap_memory_read_present(v->m, page, t->bytes, sizeof(t->bytes)))
			return false;
		t->page = page;
	}
	*next = heap_word(t->bytes + (address - page));
	return true;
}

/* Follow the list that begins at @head, of at most @most objects.  Returns how many there are;
 * *@ends: and no more. */
static size_t follow(const struct visitor *v, uint64_t head, size_t most, bool *ends)
{
	size_t nr = 0;

	most = most < MOST_LIST ? most : MOST_LIST;
	v->trail->page = 0;
	while (head && nr < most) {
		v->trail->nodes[nr] = head;
		if (!read_link(v, head, &head))
			break;
		nr++;
	}
	*ends = !head;
	return nr;
}

static int tell(struct visitor *v, size_t nr, unsigned int class, enum certain how)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++)
		err = v->cached(v->arg, v->trail->nodes[i], class, how);
	return err;
}

/* A list of a cache, as its first words say. */
struct head {
	uint64_t first;
	uint32_t length;
};

static bool read_head(const struct visitor *v, uint64_t at, struct head *head)
{
	uint8_t bytes[LIST_LENGTH + sizeof(head->length)];

	if (heap_memory_read_present(v->m, at, bytes, sizeof(bytes)))
		return false;
	head->first = heap_word(bytes);
	memcpy(&head->length, bytes + LIST_LENGTH, sizeof(head->length));
	return true;
}

/* Are the same @nr objects in the list still, and is its head @head? */
static bool is_unchanged(struct visitor *v, uint64_t at, const struct head *head, size_t nr)
{
	struct head again;
	bool ends;
	uint64_t sum;

	if (!read_head(v, at, &again) || again.first != head->first || again.length != head->length)
		return false;
	if (!v->twice)
		return true;
	sum = heap_sum((const uint8_t *)v->trail->nodes, nr * sizeof(*v->trail->nodes));
	return follow(v, head->first, nr + 1, &ends) == nr && ends &&
	       heap_sum((const uint8_t *)v->trail->nodes, nr * sizeof(*v->trail->nodes)) == sum &&
	       read_head(v, at, &again) && again.first == head->first &&
	       again.length == head->length;
}

/* Visit the list at @at of a thread's cache, which was @head. */
static int visit_list(struct visitor *v, uint64_t at, struct head head, unsigned int class)
{
	int err = 0;

	for (int i = 0; i < TRIES && !err; i++) {
		bool ends;
		size_t nr;

		if (i && !read_head(v, at, &head))
			break;
		if (!head.first && !head.length)
			return 0;
		nr = follow(v, head.first, (size_t)head.length + 2, &ends);
		/* its length is written after its head */
		if (ends && nr == head.length && is_unchanged(v, at, &head, nr))
			return tell(v, nr, class, CERTAIN);
		err = tell(v, nr, class, CHANGES);
		if (err || (ends && nr + 1 >= head.length && nr <= (size_t)head.length + 1))
			return err;
	}
	if (v->missed && !err)
		v->missed(v->arg, class);
	return err;
}

/* Visit the lists of the thread's cache at @cache. */
static int visit_cache(struct visitor *v, uint64_t cache)
{
	uint8_t lists[LIST_BYTES * TCMALLOC_SIZES];
	int err = 0;

	if (heap_memory_read_present(v->m, cache, lists, (size_t)LIST_BYTES * v->t->nr_sizes))
		return 0;
	for (unsigned int i = 1; i < v->t->nr_sizes && !err; i++) {
		const uint8_t *bytes = lists + (size_t)i * LIST_BYTES;
		struct head head = {.first = heap_word(bytes)};

		memcpy(&head.length, bytes + LIST_LENGTH, sizeof(head.length));
		if (head.first || head.length)
			err = visit_list(v, cache + (uint64_t)i * LIST_BYTES, head, i);
	}
	return err;
}

/* What the central list of a class has in its slots. */
struct slots {
	uint8_t bytes[TCMALLOC_CENTRAL];
	int32_t used;
};

static bool read_slots(const struct visitor *v, unsigned int class, struct slots *s)
{
	const uint64_t at = v->t->central + (uint64_t) class * TCMALLOC_CENTRAL;

	if (heap_memory_read_present(v->m, at, s->bytes, sizeof(s->bytes)))
		return false;
	memcpy(&s->used, s->bytes + CENTRAL_USED, sizeof(s->used));
	return s->used >= 0 && s->used <= MOST_SLOTS;
}

static const uint8_t *slot_of(const struct slots *s, int i)
{
	return s->bytes + CENTRAL_SLOTS + (size_t)i * SLOT_BYTES;
}

/* Visit slot @i of those of the class. */
static int visit_slot(struct visitor *v, unsigned int class, const struct slots *s, int i)
{
	struct slots again;
	const uint8_t *slot = slot_of(s, i);
	bool ends;
	const size_t most = v->t->moves[class], nr = follow(v, heap_word(slot), most + 1, &ends);
	const bool fits =
		ends && nr == most && nr && v->trail->nodes[nr - 1] == heap_word(slot + 8);

	if (!read_slots(v, class, &again))
		return 0;
	if (again.used > i && !memcmp(slot_of(&again, i), slot, SLOT_BYTES)) {
		if (!fits && v->missed)
			v->missed(v->arg, class);
		return tell(v, nr, class, fits ? CERTAIN : CHANGES);
	}
	return tell(v, nr, class, CHANGES);
}

static int visit_slots(struct visitor *v, unsigned int class)
{
	struct slots s;
	int err = 0;

	if (!read_slots(v, class, &s))
		return 0;
	for (int i = 0; i < s.used && !err; i++)
		err = visit_slot(v, class, &s, i);
	return err;
}

static bool read_neighbour(const struct heap_memory *m, uint64_t cache, uint64_t which,
			   uint64_t *other)
{
	return !heap_memory_read_present(m, cache + which, other, sizeof(*other));
}

/* The first cache of the list that @cache is in; 0: it is in none. */
static uint64_t first_cache(const struct tcmalloc *t, const struct heap_memory *m, uint64_t cache)
{
	uint64_t before, next;

	for (int i = 0; i < MOST_CACHES && tcmalloc_is_cache(t, m, cache); i++) {
		if (!read_neighbour(m, cache, CACHE_PREV, &before))
			return 0;
		if (!before)
			return cache;
		if (!read_neighbour(m, before, CACHE_NEXT, &next) || next != cache)
			return 0;
		cache = before;
	}
	return 0;
}

/* List the caches of the list that @cache is in.  Returns 1, 0: it is just being changed; or
 * -ENOMEM. */
static int list_caches(struct tcmalloc *t, const struct heap_memory *m, uint64_t cache)
{
	uint64_t next = first_cache(t, m, cache), before;

	t->nr_caches = 0;
	if (!next)
		return 0;
	for (cache = 0; next; cache = t->caches[t->nr_caches - 1]) {
		if (t->nr_caches >= MOST_CACHES || !tcmalloc_is_cache(t, m, next) ||
		    !read_neighbour(m, next, CACHE_PREV, &before) || before != cache)
			return 0;
		if (grow_array(&t->caches, t->nr_caches, &t->room_caches, sizeof(*t->caches)))
			return -ENOMEM;
		t->caches[t->nr_caches++] = next;
		if (!read_neighbour(m, next, CACHE_NEXT, &next))
			return 0;
	}
	return 1;
}

/* List the caches of all threads.  Returns as list_caches(). */
static int find_caches(struct tcmalloc *t, const struct heap_memory *m)
{
	int found = 0;

	for (int try = 0; try < TRIES && !found; try++)
		for (size_t i = 0; i < t->nr_heads && !found; i++) {
			uint64_t cache;

			if (!heap_memory_read_present(m, t->heads[i], &cache, sizeof(cache)))
				found = list_caches(t, m, cache);
		}
	return found;
}

/* Visit all.  Returns as the visitor's functions. */
static int visit_all(struct visitor *v)
{
	const int found = find_caches(v->t, v->m);
	int err = found < 0 ? found : 0;

	for (unsigned int i = 1; i < v->t->nr_sizes && !err; i++) {
		if (!found && v->missed)
			v->missed(v->arg, i);
		err = visit_slots(v, i);
	}
	for (size_t i = 0; i < v->t->nr_caches && !err && !heap_memory_stopped(v->m); i++)
		err = visit_cache(v, v->t->caches[i]);
	return err;
}

static int visit(struct visitor *v)
{
	int err;

	v->trail = malloc(sizeof(*v->trail));
	err = v->trail ? visit_all(v) : -ENOMEM;
	free(v->trail);
	return err;
}

/* The rest of tcmalloc_mark_cached(). */
struct marking {
	const struct tcmalloc *t;
	struct heap_list *list;
	bool missed[TCMALLOC_SIZES];
};

static int mark_block(void *arg, uint64_t address, unsigned int class, enum certain how)
{
	struct marking *k = arg;
	struct heap_block *block = heap_list_find(k->list, address);

	if (block && block->size == k->t->sizes[class] && block->state == MLK_HEAP_USED)
		block->state = how == CERTAIN ? MLK_HEAP_CACHED : MLK_HEAP_CHANGED;
	return 0;
}

static void note_missed(void *arg, unsigned int class)
{
	struct marking *k = arg;

	k->missed[class] = true;
}

/* May @block be in a list that was not followed: does its first word end one, or lead to another
 * object? */
static bool may_be_missed(const struct marking *k, const struct heap_block *block)
{
	const struct heap_block *next =
		block->words[0] ? heap_list_find(k->list, block->words[0]) : NULL;

	if (block->words[0] && (!next || next->size != block->size))
		return false;
	for (unsigned int i = 1; i < k->t->nr_sizes; i++)
		if (k->missed[i] && k->t->sizes[i] == block->size)
			return true;
	return false;
}

int tcmalloc_mark_cached(struct tcmalloc *t, const struct heap_memory *m, struct heap_list *list)
{
	struct marking k = {.t = t, .list = list};
	struct visitor v = {.t = t,
			    .m = m,
			    .cached = mark_block,
			    .missed = note_missed,
			    .arg = &k,
			    .twice = true};
	int err = visit(&v);
	bool any = false;

	for (unsigned int i = 1; i < t->nr_sizes; i++)
		any |= k.missed[i];
	for (size_t i = 0; any && i < list->nr && !err; i++)
		if (list->v[i].state == MLK_HEAP_USED && may_be_missed(&k, &list->v[i]))
			list->v[i].state = MLK_HEAP_CHANGED;
	return err;
}

/* The rest of tcmalloc_look_at_caches(). */
struct adding {
	const struct tcmalloc *t;
	struct heap_list *list;
};

static int add_cached(void *arg, uint64_t address, unsigned int class, enum certain how)
{
	struct adding *a = arg;
	const struct heap_block block = {
		.address = address, .size = a->t->sizes[class], .state = MLK_HEAP_CACHED};

	(void)how; /* at any rate it is not judged */
	return address > INT64_MAX - block.size ? 0 : heap_list_add(a->list, &block);
}

int tcmalloc_look_at_caches(struct tcmalloc *t, const struct heap_memory *m, struct heap_list *list)
{
	struct adding a = {t, list};
	struct visitor v = {.t = t, .m = m, .cached = add_cached, .arg = &a};

	return visit(&v);
}
