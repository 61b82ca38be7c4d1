/* user_images.c - see user_images.h */
#include "record/kernel/user_images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "record/base/proc.h"
#include "record/module/module_table.h"
#include "record/target/maps.h"
#include "record/target/target.h"

#define STAT_END_CODE 27 /* fields of /proc/PID/stat, from 1: proc_pid_stat(5) */
#define STAT_STACK    28
#define UNUSED_LOOKS  8	   /* after which an image is forgotten */
#define MOST_KEPT     4096 /* mappings, of which some may be gone */

struct image {
	struct user_image of;
	struct maps maps; /* executable, identified */
	uint64_t seen;	  /* number of the look */
	bool is_read;	  /* else there was nothing to read at that look */
	bool is_told;	  /* the last snapshot of this process in the trace */
};

struct user_images {
	struct mlk_writer *writer;
	struct module_table modules;
	struct image *v;
	size_t nr, room, last;
	uint64_t look;
	uint64_t too_large; /* snapshots that did not go into the trace */
};

int user_images_new(struct user_images **out, struct mlk_writer *writer)
{
	struct user_images *images = calloc(1, sizeof(*images));

	*out = images;
	if (!images)
		return -ENOMEM;
	images->writer = writer;
	images->modules.embed = EMBED_SYMBOLS;
	images->look = 1;
	return 0;
}

static bool is_same(const struct user_image *a, const struct user_image *b)
{
	return a->tgid == b->tgid && a->image[0] == b->image[0] && a->image[1] == b->image[1];
}

static struct image *find(struct user_images *images, const struct user_image *of)
{
	if (images->last < images->nr && is_same(&images->v[images->last].of, of))
		return &images->v[images->last];
	for (size_t i = 0; i < images->nr; i++)
		if (is_same(&images->v[i].of, of)) {
			images->last = i;
			return &images->v[i];
		}
	return NULL;
}

/* Has the process the memory @of now? */
static bool has_image(const struct user_image *of)
{
	uint64_t image[2] = {0};
	char stat[1024], *at;
	int field = 2;

	proc_read(stat, sizeof(stat), "/proc/%u/stat", of->tgid);
	at = strrchr(stat, ')'); /* the end of the second field, the name, which may have any */
	while (at && (at = strchr(at + 1, ' ')) && field < STAT_STACK) {
		field++;
		if (field == STAT_STACK)
			image[0] = strtoull(at, NULL, 10);
		else if (field == STAT_END_CODE)
			image[1] = strtoull(at, NULL, 10);
	}
	return image[0] && image[0] == of->image[0] && image[1] == of->image[1];
}

/* Put what was mapped before, and is not any more, into @fresh: stacks may have it. */
static int keep_before(struct maps *fresh, const struct maps *before)
{
	int err = 0;

	for (size_t i = 0; i < before->nr && fresh->nr < MOST_KEPT && !err; i++)
		if (!maps_overlaps(fresh, &before->v[i]))
			err = maps_add(fresh, &before->v[i]);
	return err;
}

static bool are_equal(const struct maps *a, const struct maps *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (a->v[i].start != b->v[i].start || a->v[i].end != b->v[i].end ||
		    a->v[i].offset != b->v[i].offset || !maps_same_file(&a->v[i], &b->v[i]))
			return false;
	return true;
}

/* Read the mappings of @of into @fresh.  -ESRCH: it is gone. */
static int read_code(struct user_images *images, const struct user_image *of, struct maps *fresh)
{
	const struct target t = {.pid = (pid_t)of->tgid, .task = (pid_t)of->tgid, .pidfd = -1};
	int err = has_image(of) ? maps_read(fresh, t.pid) : -ESRCH;

	if (err)
		return err == -ENOMEM ? err : -ESRCH;
	maps_keep_code(fresh);
	for (size_t i = 0; i < fresh->nr && !err; i++)
		err = module_table_identify(&images->modules, &t, images->writer, &fresh->v[i]);
	/* What was read is of the program that it runs still, and not of the next one. */
	return !err && !has_image(of) ? -ESRCH : err;
}

static int add_image(struct user_images *images, const struct user_image *of, struct image **out)
{
	if (grow_array(&images->v, images->nr, &images->room, sizeof(*images->v)))
		return -ENOMEM;
	*out = &images->v[images->nr++];
	**out = (struct image){.of = *of};
	return 0;
}

int user_images_see(struct user_images *images, const struct user_image *of, bool *known)
{
	struct image *image = find(images, of);
	struct maps fresh = {0};
	int err = 0;

	if (!image)
		err = add_image(images, of, &image);
	if (err)
		return err;
	if (image->seen != images->look) {
		image->seen = images->look;
		err = read_code(images, of, &fresh);
		if (!err)
			err = keep_before(&fresh, &image->maps);
		if (!err && !are_equal(&fresh, &image->maps)) {
			maps_release(&image->maps);
			image->maps = fresh;
			fresh = (struct maps){0};
			image->is_read = true;
			image->is_told = false;
		}
		maps_release(&fresh);
	}
	*known = image->is_read;
	return err == -ESRCH ? 0 : err;
}

int user_images_tell(struct user_images *images, const struct user_image *of, uint64_t time_ns)
{
	struct image *image = find(images, of);
	struct mlk_maps snapshot = {.tgid = of->tgid, .time_ns = time_ns};
	int err;

	if (!image || !image->is_read || image->is_told)
		return 0;
	for (size_t i = 0; i < images->nr; i++)
		if (images->v[i].of.tgid == of->tgid)
			images->v[i].is_told = false;
	image->is_told = true;
	snapshot.nr = image->maps.nr;
	snapshot.mappings = image->maps.v;
	err = mlk_writer_maps(images->writer, &snapshot);
	/* Too large for a chunk: whatever a process has mapped, the recording goes on. */
	if (err != -EINVAL)
		return err;
	images->too_large++;
	return 0;
}

void user_images_look(struct user_images *images)
{
	size_t left = 0;

	for (size_t i = 0; i < images->nr; i++) {
		if (images->v[i].seen + UNUSED_LOOKS < images->look)
			maps_release(&images->v[i].maps);
		else
			images->v[left++] = images->v[i];
	}
	images->nr = left;
	images->look++;
}

uint64_t user_images_unreadable(const struct user_images *images)
{
	return images->modules.unreadable;
}

uint64_t user_images_too_large(const struct user_images *images)
{
	return images->too_large;
}

void user_images_free(struct user_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->nr; i++)
		maps_release(&images->v[i].maps);
	module_table_release(&images->modules);
	free(images->v);
	free(images);
}
