/* found.c - see found.h */
#include "record/inject/found.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/base/own_number.h"
#include "record/inject/image.h"
#include "record/inject/inject.h"
#include "record/inject/reasons.h"
#include "record/inject/remote/names.h"

int found_new(struct found **out, pid_t pid, char *why)
{
	struct found *f = aligned_alloc(_Alignof(struct found), sizeof(*f));
	int err = -ENOMEM;

	if (f) {
		memset(f, 0, sizeof(*f));
		f->pid = pid;
		f->mem = -1;
		err = maps_read(&f->maps, living_thread(pid));
	}
	*out = f;
	if (!err)
		return 0;
	if (err == -EACCES || err == -EPERM)
		snprintf(why, INJECT_WHY, "may be examined only with CAP_SYS_PTRACE");
	else
		snprintf(why, INJECT_WHY, "does not tell what it has mapped: %s", strerror(-err));
	found_free(f);
	*out = NULL;
	return err;
}

int found_open(struct found *f, char *why)
{
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)living_thread(f->pid));
	f->mem = open(path, O_RDWR | O_CLOEXEC);
	if (f->mem >= 0)
		return 0;
	err = -errno;
	reason_denied(why, err);
	return err;
}

void found_free(struct found *f)
{
	if (!f)
		return;
	if (f->mem >= 0)
		close(f->mem);
	maps_release(&f->maps);
	free(f->inside.text);
	free(f);
}

bool found_read(const struct found *f, uint64_t at, void *to, size_t bytes)
{
	return pread(f->mem, to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool found_is_code(const struct mlk_mapping *m)
{
	return !strcmp(m->path, INJECT_SHOWN(INJECT_CODE_NAME));
}

bool found_is_rings(const struct mlk_mapping *m)
{
	return !strcmp(m->path, INJECT_SHOWN(INJECT_RINGS_NAME));
}

enum image_found found_image(struct found *f)
{
	struct image ours;
	struct inject_inside *in = &f->inside;
	const struct mlk_mapping *first = NULL;

	for (size_t i = 0; i < f->maps.nr; i++) {
		const struct mlk_mapping *m = &f->maps.v[i];

		if (found_is_code(m) && !m->offset && !first)
			first = m;
		if (found_is_rings(m) && !f->rings)
			f->rings = m->start;
	}
	in->pid = f->pid;
	in->own_numbers = own_number_differs(f->pid);
	in->mem = f->mem;
	in->injected = &f->injected;
	in->base = first ? first->start : 0;
	if (!first || !found_read(f, in->base, &in->head, sizeof(in->head)) ||
	    in->head.magic != INJECTED_IMAGE)
		return IMAGE_NONE;
	if (image_get(&ours) || memcmp(&in->head, ours.bytes, sizeof(in->head)) != 0)
		return IMAGE_OTHER;
	if (!found_read(f, in->base + in->head.injected, &f->injected, sizeof(f->injected)) ||
	    f->injected.magic != INJECTED_MAGIC || f->injected.nr_sites > INJECTED_MAX_SITES ||
	    f->injected.nr_mapped > INJECTED_MAX_MAPPED ||
	    f->injected.nr_first_mapped > f->injected.nr_mapped ||
	    f->injected.nr_mapped - f->injected.nr_first_mapped > INJECTED_MAX_LATER ||
	    f->injected.nr_first_sites > f->injected.nr_sites)
		return IMAGE_NONE;
	return IMAGE_OURS;
}

bool found_is_recorded(const struct found *f)
{
	uint32_t ended, alive;

	return f->rings &&
	       found_read(f, f->rings + offsetof(struct preload_header, ended), &ended,
			  sizeof(ended)) &&
	       found_read(f, f->rings + offsetof(struct preload_header, alive), &alive,
			  sizeof(alive)) &&
	       !ended && alive && !(alive & FUTEX_OWNER_DIED);
}
