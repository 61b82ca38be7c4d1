/* dwunw_state.c - struct dwunw: a list of modules and of directories */
#include "unwind/module/dwunw_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "unwind/elf/elf_util.h"

static int stacks_new(struct dwunw_stacks **out)
{
	struct dwunw_stacks *stacks = *out = calloc(1, sizeof(*stacks));
	int err;

	if (!stacks)
		return -ENOMEM;
	dwunw_seed_draw(&stacks->seed, stacks);
	stacks->marks = calloc(DWUNW_MAX_FRAMES, sizeof(*stacks->marks));
	stacks->runs = calloc(DWUNW_MAX_FRAMES, sizeof(*stacks->runs));
	err = stacks->marks && stacks->runs ? 0 : -ENOMEM;
	if (!err)
		err = dwunw_frame_table_init(&stacks->places, &stacks->seed);
	if (!err)
		err = dwunw_stack_tree_init(&stacks->tree, &stacks->places, &stacks->seed);
	if (!err)
		err = dwunw_prefix_match_init(&stacks->forks);
	return err;
}

static void stacks_free(struct dwunw_stacks *stacks)
{
	if (!stacks)
		return;
	dwunw_prefix_match_release(&stacks->forks);
	dwunw_stack_tree_release(&stacks->tree);
	dwunw_frame_table_release(&stacks->places);
	free(stacks->marks);
	free(stacks->runs);
	free(stacks);
}

int dwunw_new(struct dwunw **out)
{
	struct dwunw *dw = calloc(1, sizeof(*dw));
	int err = dw ? stacks_new(&dw->stacks) : -ENOMEM;

	if (err) {
		dwunw_free(dw);
		dw = NULL;
	}
	*out = dw;
	return err;
}

void dwunw_free(struct dwunw *dw)
{
	if (!dw)
		return;
	for (size_t i = 0; i < dw->nr_modules; i++)
		dwunw_module_free(dw->modules[i]);
	for (size_t i = 0; i < dw->dirs.nr; i++)
		free(dw->dirs.dir[i]);
	stacks_free(dw->stacks);
	free(dw->modules);
	free(dw->dirs.dir);
	free(dw->dirs.symfs);
	free(dw->dirs.release);
	free(dw);
}

int dwunw_debug_dir_add(struct dwunw *dw, const char *dir)
{
	char *copy = strdup(dir);

	if (!copy || grow_array(&dw->dirs.dir, dw->dirs.nr, &dw->dirs.room, sizeof(copy))) {
		free(copy);
		return -ENOMEM;
	}
	dw->dirs.dir[dw->dirs.nr++] = copy;
	return 0;
}

/* Put a copy of @text in place of *@to. */
static int replace(char **to, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

int dwunw_symfs_set(struct dwunw *dw, const char *dir)
{
	return replace(&dw->dirs.symfs, dir);
}

int dwunw_kernel_release_set(struct dwunw *dw, const char *release)
{
	return replace(&dw->dirs.release, release);
}

int dwunw_debug_file_set(struct dwunw *dw, uint32_t number, const char *path)
{
	struct dwunw_module *module = dwunw_module_get(dw, number);
	int err = module ? dwunw_debugfile_check(path, module) : -ENOENT;

	return err ? err : replace(&module->debug_file, path);
}

int dwunw_file_state_set(struct dwunw *dw, uint32_t number, const struct dwunw_file_state *state)
{
	struct dwunw_module *module = dwunw_module_get(dw, number);

	if (!module)
		return -ENOENT;
	module->mark = (struct dwunw_file_mark){.inode = state->inode,
						.size = state->size,
						.modified = state->modified,
						.latest_ns = state->latest_ns};
	module->marked = true;
	return 0;
}

void dwunw_demangle_set(struct dwunw *dw, bool demangle)
{
	dw->dirs.mangled = !demangle;
}

void dwunw_debug_fetch_set(struct dwunw *dw, dwunw_debug_fetch *fetch, void *arg)
{
	dw->dirs.fetch = fetch;
	dw->dirs.fetch_arg = arg;
}

/* Make room for one more module. */
static int make_room(struct dwunw *dw)
{
	if (dw->nr_modules >= DWUNW_FOREIGN_MODULE)
		return -ENOMEM;
	return grow_array(&dw->modules, dw->nr_modules, &dw->room, sizeof(*dw->modules));
}

int dwunw_module_add(struct dwunw *dw, uint32_t *module, const char *path, const void *image,
		     size_t image_len)
{
	int err = make_room(dw);

	*module = DWUNW_NO_MODULE;
	if (!err)
		err = dwunw_module_new(&dw->modules[dw->nr_modules], path, image, image_len);
	if (!err)
		*module = (uint32_t)dw->nr_modules++;
	return err;
}

static int clone_module(struct dwunw *dw, const struct dwunw_module *module)
{
	uint32_t number;
	size_t len = 0;
	const char *image = elf_rawfile(module->elf, &len);

	return image ? dwunw_module_add(dw, &number, module->path, image, len) : -ENOMEM;
}

int dwunw_clone(struct dwunw **out, const struct dwunw *dw)
{
	int err = dwunw_new(out);

	for (size_t i = 0; !err && i < dw->nr_modules; i++)
		err = clone_module(*out, dw->modules[i]);
	if (!err)
		return 0;
	dwunw_free(*out);
	*out = NULL;
	return -ENOMEM;
}

/* Take @file, which is freed, for the next module; NULL: there was no memory for its name. */
static int open_one(struct dwunw *dw, char *file, const char *path, const struct dwunw_build_id *id)
{
	int err = file ? dwunw_module_map(&dw->modules[dw->nr_modules], file, path, id) : -ENOMEM;

	free(file);
	return err;
}

/* The file itself first, which can be unwound, too; a debug file gives names alone. */
static int open_by_build_id(struct dwunw *dw, const char *path, const struct dwunw_build_id *id)
{
	static const char *const ends[] = {"", "/elf", ".debug", "/debug"};
	int err = -ENOENT;

	for (size_t end = 0; end < sizeof(ends) / sizeof(ends[0]); end++)
		for (size_t i = 0; i < dw->dirs.nr && err && err != -ENOMEM; i++)
			err = open_one(dw, dwunw_build_id_path(id, dw->dirs.dir[i], ends[end]),
				       path, id);
	return err;
}

int dwunw_module_open(struct dwunw *dw, uint32_t *module, const char *path, const uint8_t *build_id,
		      size_t build_id_len)
{
	struct dwunw_build_id id = {.len = build_id_len};
	int err;

	*module = DWUNW_NO_MODULE;
	/* Any other path would depend on the directory that the caller happens to be in. */
	if (!build_id_len || build_id_len > sizeof(id.bytes) || path[0] != '/')
		return -ENOENT;
	memcpy(id.bytes, build_id, build_id_len);
	err = make_room(dw);
	if (err)
		return err;
	err = -ENOENT;
	if (dw->dirs.symfs)
		err = open_one(dw, dwunw_path("%s%s", dw->dirs.symfs, path), path, &id);
	if (err && err != -ENOMEM)
		err = open_one(dw, strdup(path), path, &id);
	if (err && err != -ENOMEM) {
		int found = open_by_build_id(dw, path, &id);

		/* what is wrong with the file at the path says more than that there is no other */
		err = found == -ENOENT ? err : found;
	}
	if (!err)
		*module = (uint32_t)dw->nr_modules++;
	return err;
}

struct dwunw_module *dwunw_module_get(const struct dwunw *dw, uint32_t number)
{
	return number < dw->nr_modules ? dw->modules[number] : NULL;
}

const char *dwunw_module_path(const struct dwunw *dw, uint32_t module)
{
	return module < dw->nr_modules ? dw->modules[module]->path : NULL;
}

const void *dwunw_module_section(const struct dwunw *dw, uint32_t module, const char *name,
				 size_t *len)
{
	Elf *elf = module < dw->nr_modules ? dw->modules[module]->elf : NULL;
	GElf_Shdr shdr;
	Elf_Scn *section = elf ? dwunw_elf_section(elf, name, &shdr) : NULL;
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	*len = data ? data->d_size : 0;
	return data ? data->d_buf : NULL;
}
