/* allocators.c - sets of probed objects: compared, copied, released */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/allocator/allocator.h"

static const struct alloc_object *find_file(const struct allocators *a, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < a->nr; i++)
		if (a->v[i].code.inode == m->inode && a->v[i].code.dev_major == m->dev_major &&
		    a->v[i].code.dev_minor == m->dev_minor)
			return &a->v[i];
	return NULL;
}

bool allocators_same(const struct allocators *a, const struct allocators *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++) {
		const struct alloc_object *o = &a->v[i], *other = find_file(b, &o->code);

		if (!other || other->nr != o->nr)
			return false;
		for (size_t k = 0; k < o->nr; k++)
			if (o->sites[k].function != other->sites[k].function ||
			    o->sites[k].by_ret != other->sites[k].by_ret)
				return false;
	}
	return true;
}

int allocators_copy(struct allocators *to, const struct allocators *from)
{
	int err = 0;

	*to = *from;
	for (size_t i = 0; i < to->nr; i++) {
		struct alloc_object *o = &to->v[i];

		o->path = strdup(from->v[i].path);
		o->code.path = o->path;
		o->fd = fcntl(from->v[i].fd, F_DUPFD_CLOEXEC, 0);
		if (!o->path)
			err = -ENOMEM;
		else if (o->fd < 0)
			err = -errno;
	}
	return err;
}

void allocators_release(struct allocators *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		if (a->v[i].fd >= 0)
			close(a->v[i].fd);
		free(a->v[i].path);
	}
	a->nr = 0;
}
