/* missing_symbols.c - see missing_symbols.h */
#include "report/view/missing_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/name/dpkg.h"

#define MAX_SHOWN 10

struct module {
	uint32_t number; /* as frames have it */
	size_t frames;	 /* distinct ones without a name */
	const char *path;
	char *package; /* NULL: none is known */
};

struct missing_symbols {
	const struct replay *leaks;
	struct module modules[MAX_SHOWN]; /* those met first */
	size_t nr;
	size_t left_out; /* frames in other modules */
	/* those whose files are here, and the question which packages these are of */
	const char *paths[MAX_SHOWN];
	struct module *here[MAX_SHOWN];
	size_t nr_here;
	struct dpkg *packages; /* NULL: it is not open */
};

static void note(void *arg, const struct dwunw_frame *frame)
{
	struct missing_symbols *u = arg;
	const struct symbols_source source = {.dw = u->leaks->dw, .images = u->leaks->images};
	const char *path = symbols_module_path(&source, frame);
	size_t i = 0;

	/* memory of no file, or something like [vdso] */
	if (path[0] != '/')
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
static int ask_packages(struct missing_symbols *u)
{
	struct dwunw *scratch;
	int err = dwunw_new(&scratch);

	if (err)
		return err;
	for (size_t i = 0; i < u->nr; i++) {
		struct module *module = &u->modules[i];
		const struct mlk_id *id = trace_modules_id(u->leaks->images, module->number);

		if (!is_here(scratch, id, module->path))
			continue;
		u->paths[u->nr_here] = module->path;
		u->here[u->nr_here++] = module;
	}
	dwunw_free(scratch);
	return dpkg_ask(&u->packages, DPKG_LISTS, u->paths, u->nr_here);
}

static int take_packages(struct missing_symbols *u)
{
	char *names[MAX_SHOWN];
	int err = dpkg_read(u->packages, names);

	u->packages = NULL;
	for (size_t i = 0; i < u->nr_here && !err; i++)
		u->here[i]->package = names[i];
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
		fputs("install its debug symbols, or give its unstripped or debug file with "
		      "--symfs or --debug-dir\n",
		      out);
}

int missing_symbols_new(struct missing_symbols **out, const struct view *view,
			const struct replay *leaks)
{
	struct missing_symbols *u = calloc(1, sizeof(*u));
	int err = 0;

	*out = NULL;
	if (!u)
		return -ENOMEM;
	u->leaks = leaks;
	symbols_each_unnamed(view->names, note, u);
	if (u->nr)
		err = ask_packages(u);
	if (err)
		missing_symbols_free(u);
	else
		*out = u;
	return err;
}

int missing_symbols_print(struct missing_symbols *u, FILE *out)
{
	int err = u->packages ? take_packages(u) : 0;

	if (err || !u->nr)
		return err;
	qsort(u->modules, u->nr, sizeof(*u->modules), more_frames);
	fputs("\nmodules that lack symbols (and addresses without a name in them):\n", out);
	for (size_t i = 0; i < u->nr; i++)
		print_module(out, &u->modules[i]);
	if (u->left_out)
		fprintf(out, "  others (%zu)\n", u->left_out);
	return 0;
}

void missing_symbols_free(struct missing_symbols *u)
{
	if (!u)
		return;
	(void)dpkg_read(u->packages, NULL);
	for (size_t i = 0; i < u->nr; i++)
		free(u->modules[i].package);
	free(u);
}
