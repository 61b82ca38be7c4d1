/* links.c - see links.h */
#include "record/links.h"

#include <stdlib.h>
#include <string.h>

static bool same_file(const struct alloc_object *a, const struct alloc_object *b)
{
	return a->code.inode == b->code.inode && a->code.dev_major == b->code.dev_major &&
	       a->code.dev_minor == b->code.dev_minor;
}

static bool same_object(const struct alloc_object *a, const struct alloc_object *b)
{
	if (!same_file(a, b) || a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (a->sites[i].function != b->sites[i].function)
			return false;
	return true;
}

struct link_set *links_find(const struct links *l, const struct alloc_object *o)
{
	for (size_t i = 0; i < l->nr; i++)
		if (same_object(l->v[i].object, o))
			return &l->v[i];
	return NULL;
}

struct link_set *links_add(struct links *l, const struct alloc_object *o)
{
	struct alloc_object *copy;

	if (l->nr == l->room) {
		size_t room = l->room ? l->room * 2 : 2;
		struct link_set *v = realloc(l->v, room * sizeof(*v));

		if (!v)
			return NULL;
		l->v = v;
		l->room = room;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *o;
	copy->path = NULL;
	copy->fd = -1;
	l->v[l->nr] = (struct link_set){.object = copy};
	return &l->v[l->nr++];
}

struct bpf_link **links_perf(struct link_set *set)
{
	if (set->nr_perf == set->room_perf) {
		size_t room = set->room_perf ? set->room_perf * 2 : 16;
		struct bpf_link **perf = realloc(set->perf, room * sizeof(struct bpf_link *));

		if (!perf)
			return NULL;
		set->perf = perf;
		set->room_perf = room;
	}
	return &set->perf[set->nr_perf];
}

static void drop(struct link_set *set, struct closing *closing)
{
	for (size_t i = 0; i < set->nr_fds; i++)
		closing_add(closing, set->fds[i], NULL);
	for (size_t i = 0; i < set->nr_perf; i++)
		closing_add(closing, -1, set->perf[i]);
	free(set->perf);
	free(set->object);
}

bool links_clash(const struct links *l, const struct allocators *a)
{
	for (size_t i = 0; i < l->nr; i++)
		for (size_t k = 0; k < a->nr; k++)
			if (same_file(l->v[i].object, &a->v[k]) &&
			    !same_object(l->v[i].object, &a->v[k]))
				return true;
	return false;
}

static bool is_kept(const struct allocators *keep, const struct link_set *set)
{
	for (size_t i = 0; keep && i < keep->nr; i++)
		if (same_object(&keep->v[i], set->object))
			return true;
	return false;
}

void links_drop(struct links *l, const struct allocators *keep, struct closing *closing)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->nr; i++)
		if (is_kept(keep, &l->v[i]))
			l->v[kept++] = l->v[i];
		else
			drop(&l->v[i], closing);
	l->nr = kept;
	if (kept)
		return;
	free(l->v);
	memset(l, 0, sizeof(*l));
}
