/* links.c - see links.h */
#include "record/probe/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/probe/perf_uprobe.h"
#include "record/probe/uprobe_multi.h"

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
		if (a->sites[i].function != b->sites[i].function ||
		    a->sites[i].by_ret != b->sites[i].by_ret)
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

int links_keep(struct link_set *set, int fd)
{
	if (set->nr == set->room) {
		size_t room = set->room ? set->room * 2 : 8;
		int *fds = realloc(set->fds, room * sizeof(*fds));

		if (!fds) {
			close(fd);
			return -ENOMEM;
		}
		set->fds = fds;
		set->room = room;
	}
	set->fds[set->nr++] = fd;
	return 0;
}

int links_make(const struct helper_link *l)
{
	char path[64];
	struct uprobe_multi multi = {.path = path,
				     .offsets = l->offsets,
				     .cookies = l->cookies,
				     .nr = l->nr,
				     .pid = l->of.pid,
				     .is_return = l->is_return,
				     .session = l->session};
	struct perf_uprobe perf = {.path = path,
				   .offset = l->offsets[0],
				   .cookie = l->cookies[0],
				   .tid = l->of.task,
				   .is_return = l->is_return};

	/* Through the descriptor: by name another file might be found than the one that is mapped.
	 */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->file);
	if (l->keeps)
		return perf_uprobe_keep(&perf);
	return l->multi ? uprobe_multi_link(l->program, &multi)
			: perf_uprobe_link(l->program, &perf);
}

int links_put(struct link_set *set, struct helper *helper, const struct helper_link *l)
{
	int fd = links_make(l);

	if (helper && (fd == -EPERM || fd == -EACCES))
		fd = helper_link(helper, l);
	return fd < 0 ? fd : links_keep(set, fd);
}

static void drop(struct link_set *set, struct link_closer *closing)
{
	for (size_t i = 0; i < set->nr; i++)
		link_closer_add(closing, set->fds[i]);
	free(set->fds);
	free(set->object);
}

bool links_clash(const struct links *l, const struct alloc_object *o)
{
	for (size_t i = 0; i < l->nr; i++)
		if (same_file(l->v[i].object, o) && !same_object(l->v[i].object, o))
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

void links_drop(struct links *l, const struct allocators *keep, struct link_closer *closing)
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
