/* explain.c - which entries could be changed, for --dry-run */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/inject/inject.h"
#include "record/inject/plan.h"

static void print_entry(void *ctx, const char *name, const char *why)
{
	fprintf(ctx, "  %-20s %s\n", name, why ? why : "can be changed");
}

/* Returns 0 or -errno. */
static int explain(FILE *out, struct inject_plan *plan, int mem, struct maps *maps,
		   const struct allocators *a)
{
	struct image image;
	int err;

	if (image_get(&image))
		return -ENOTSUP;
	err = inject_plan_islands(plan, a, maps);
	if (err == -ENOSPC) {
		fputs("  none: there is no room within 2 GiB of its allocator\n", out);
		return 0;
	}
	if (!err)
		err = inject_plan_sites(plan, a, mem, &image, 0, print_entry, out);
	return err < 0 ? err : 0;
}

int inject_explain(FILE *out, pid_t pid, const struct allocators *a)
{
	struct inject_plan *plan = calloc(1, sizeof(*plan));
	struct maps maps = {0};
	char path[32];
	int mem, err;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)living_thread(pid));
	mem = open(path, O_RDONLY | O_CLOEXEC);
	err = !plan ? -ENOMEM : mem < 0 ? -errno : maps_read(&maps, living_thread(pid));
	fprintf(out, "process %d: the entries of its functions\n", (int)pid);
	if (!err)
		err = explain(out, plan, mem, &maps, a);
	if (mem >= 0)
		close(mem);
	maps_release(&maps);
	free(plan);
	return err;
}
