/* unnamed.c - see unnamed.h */
#include "report/unnamed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/packages.h"
#include "report/text.h"

#define MAX_SHOWN 10

struct module {
	uint32_t number; /* as frames have it */
	size_t frames;	 /* distinct ones without a name */
	const char *path;
	char *package; /* NULL: none is known */
};

struct unnamed {
	const struct leaks *leaks;
	struct module modules[MAX_SHOWN]; /* those met first */
	size_t nr;
	size_t left_out; /* frames in other modules */
};

static const char *path_of(const struct leaks *leaks, uint32_t module)
{
	const char *path = dwunw_module_path(leaks_unwinder(leaks), module);

	return path ? path : images_absent_path(leaks_images(leaks), module);
}

static void note(void *arg, const struct dwunw_frame *frame)
{
	struct unnamed *u = arg;
	const char *path = path_of(u->leaks, frame->module);
	size_t i = 0;

	/* memory of no file, or something like [vdso] */
	if (!path || path[0] != '/')
		return;
	while (i < u->nr && u->modules[i].number != frame->module)
		i++;
	if (i == MAX_SHOWN) {
		u->left_out++;
		return;
	}
	if (i == u->nr)
		u->modules[u->nr++] = (struct module){.number = frame->module, .path = path};
	u->modules[i].frames++;
}

/* Is the file at the module's path the very one that was recorded? */
static bool is_here(struct dwunw *scratch, const struct mlk_id *id, const char *path)
{
	uint32_t number;

	return id && id->len > 1 && id->len <= MLK_MAX_ID && id->bytes[0] == MLK_ID_BUILD_ID &&
	       !dwunw_module_open(scratch, &number, path, id->bytes + 1, id->len - 1);
}

/* Another file at that path may belong to a package that has nothing to do with the one recorded.
 */
static int find_packages(struct unnamed *u)
{
	const char *paths[MAX_SHOWN];
	char *names[MAX_SHOWN];
	struct module *here[MAX_SHOWN];
	struct dwunw *scratch;
	size_t nr = 0;
	int err = dwunw_new(&scratch);

	for (size_t i = 0; i < u->nr && !err; i++) {
		struct module *module = &u->modules[i];
		const struct mlk_id *id = images_id(leaks_images(u->leaks), module->number);

		if (!is_here(scratch, id, module->path))
			continue;
		paths[nr] = module->path;
		here[nr++] = module;
	}
	if (!err)
		err = packages_find(paths, nr, names);
	for (size_t i = 0; i < nr && !err; i++)
		here[i]->package = names[i];
	dwunw_free(scratch);
	return err;
}

static int more_frames(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->frames != y->frames)
		return x->frames > y->frames ? -1 : 1;
	return strcmp(x->path, y->path);
}

static void print_module(FILE *out, const struct module *module)
{
	const char *package = module->package;

	fputs("  ", out);
	text_print(out, module->path);
	fprintf(out, " (%zu): ", module->frames);
	if (package)
		/* of all packages only the C library's has its symbols in one of the older kind */
		fprintf(out, "install the package %s-%s\n", package,
			!strcmp(package, "libc6") ? "dbg" : "dbgsym");
	else
		fputs("install its debug symbols, or give its unstripped or debug file by "
		      "--symfs or --debug-dir\n",
		      out);
}

int print_unnamed(FILE *out, const struct view *view, const struct leaks *leaks)
{
	struct unnamed u = {.leaks = leaks};
	int err;

	names_each_unnamed(view_names(view), note, &u);
	if (!u.nr)
		return 0;
	err = find_packages(&u);
	if (!err) {
		qsort(u.modules, u.nr, sizeof(*u.modules), more_frames);
		fputs("\nmodules that lack symbols (and addresses without a name in them):\n", out);
		for (size_t i = 0; i < u.nr; i++)
			print_module(out, &u.modules[i]);
		if (u.left_out)
			fprintf(out, "  others (%zu)\n", u.left_out);
	}
	for (size_t i = 0; i < u.nr; i++)
		free(u.modules[i].package);
	return err;
}
