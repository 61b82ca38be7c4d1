/* allocator.c - which object's malloc is called, and what else of it is to be probed */
#include "record/allocator/allocator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mleak.h"
#include "record/allocator/alloc_functions.h"
#include "record/allocator/allocator_explain.h"
#include "record/module/elffile.h"
#include "record/target/link_map.h"

/* A look-up of all names, object after object. */
struct search {
	const struct target *target;
	const struct loaded_objects *objects;
	char names[WANTED_NR][64]; /* with the prefix */
	const char *name_of[WANTED_NR];
	bool taken[WANTED_NR]; /* defined by an object examined before */
	bool malloc_here;      /* the object being examined has the malloc that counts */
	bool prefixed;
	bool whole;		 /* what has no malloc and free of its own is for others */
	bool symtab;		 /* names that are not exported count too */
	enum returns_by returns; /* not RETURNS_AUTO, if the process may use an alternate stack */
	const char *why;
};

/* Has a symbol table of @elf the function sigaltstack, be it its own or another file's? */
static bool names_altstack(Elf *elf)
{
	struct elf_symbols s = {.elf = elf};

	while (elffile_next_symbol(&s)) {
		const char *name = elffile_symbol_name(&s);

		if (name && !strcmp(name, "sigaltstack"))
			return true;
	}
	return false;
}

static bool elf_uses_altstack(Elf *elf)
{
	return names_altstack(elf) || elffile_section(elf, ".go.buildinfo") ||
	       elffile_section(elf, ".note.go.buildid");
}

static bool elf_lacks_loader(Elf *elf)
{
	return !elffile_has_loader(elf);
}

/* Is @holds true of the file behind @m?  Not of one that cannot be read. */
static bool file_is(const struct target *t, const struct mlk_mapping *m, bool (*holds)(Elf *elf))
{
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool result = elf && holds(elf);

	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return result;
}

/* Does the program of @t, or one of its libraries, call sigaltstack(), so that signal handlers may
 * run on a stack of their own?  So it says by what it takes from the C library, or if it is
 * statically linked, has of it.  Go's does so without. */
static bool uses_altstack(const struct target *t, const struct loaded_objects *objects)
{
	for (size_t i = 0; i < objects->nr; i++)
		if (!target_is_libc(objects->v[i]->path) &&
		    file_is(t, objects->v[i], elf_uses_altstack))
			return true;
	return false;
}

static void search_init(struct search *s, const struct target *t,
			const struct loaded_objects *objects, const char *prefix,
			const struct allocator_opts *opts)
{
	memset(s, 0, sizeof(*s));
	s->target = t;
	s->objects = objects;
	s->prefixed = prefix != NULL;
	s->returns = opts->entries_alone ? RETURNS_PROBE : opts->returns;
	if (s->returns == RETURNS_AUTO && !opts->spares_handlers && uses_altstack(t, objects))
		s->returns = RETURNS_RET;
	for (size_t i = 0; i < WANTED_NR; i++) {
		snprintf(s->names[i], sizeof(s->names[i]), "%s%s", prefix ? prefix : "",
			 wanted[i].name);
		s->name_of[i] = s->names[i];
		s->taken[i] = (prefix && wanted[i].group == WANTED_MAP) ||
			      (opts->no_operators && alloc_functions_is_operator(i));
	}
}

static void read_functions(const struct search *s, Elf *elf, const struct mlk_mapping *m,
			   struct elf_function *found)
{
	const struct elf_names names = {s->name_of, WANTED_NR, found};
	char path[PATH_MAX + 64];
	Elf *debug;
	int fd;

	elffile_functions(elf, elf, ELF_EXPORTED, &names);
	if (!s->symtab)
		return;
	elffile_functions(elf, elf, ELF_ALL, &names);
	if (found[WANTED_MALLOC].found)
		return;
	target_path(s->target, m, path, sizeof(path));
	debug = debugfile_open(elf, path, &fd);
	if (!debug)
		return;
	elffile_functions(elf, debug, ELF_ALL, &names);
	elf_end(debug);
	close(fd);
}

/* The object of @m among those found, or a new one; NULL: there is no room. */
static struct alloc_object *object_for(struct allocators *a, const struct search *s,
				       const struct mlk_mapping *m)
{
	struct alloc_object *o;

	for (size_t i = 0; i < a->nr; i++)
		if (a->v[i].code.start == m->start)
			return &a->v[i];
	if (a->nr == ALLOCATOR_MAX_OBJECTS)
		return NULL;
	o = &a->v[a->nr];
	memset(o, 0, sizeof(*o));
	o->path = strdup(m->path);
	if (!o->path)
		return NULL;
	o->code = *m;
	o->code.path = o->path;
	o->is_program = s->objects->program && s->objects->program->start == m->start;
	o->why = s->why;
	o->fd = -1;
	a->nr++;
	return o;
}

/* Take those of @found that no earlier object defines. */
static void add_sites(struct search *s, struct alloc_object *object,
		      const struct elf_function *found)
{
	for (size_t i = 0; i < WANTED_NR; i++) {
		const struct site_wanted w = {.name = s->names[i],
					      .func = wanted[i].func,
					      .kind = wanted[i].kind,
					      .nr_args = wanted[i].nr_args,
					      .at = &found[i]};

		if (!found[i].found || s->taken[i])
			continue;
		s->taken[i] = true;
		/* Of other libraries the operators call malloc. */
		if (wanted[i].group != WANTED_OWN || s->malloc_here)
			sites_add(object, &w);
	}
}

/* Does @found hold anything that would be taken? */
static bool is_new(struct search *s, const struct elf_function *found)
{
	bool any = false;

	s->malloc_here = found[WANTED_MALLOC].found && !s->taken[WANTED_MALLOC];
	for (size_t i = 0; i < WANTED_NR; i++) {
		if (!found[i].found || s->taken[i])
			continue;
		if (wanted[i].group == WANTED_OWN && !s->malloc_here)
			s->taken[i] = true;
		else
			any = true;
	}
	return any;
}

/* Look into the object of @m.  Returns 0, or -errno when its file cannot be opened. */
static int search_object(struct search *s, struct allocators *a, const struct mlk_mapping *m)
{
	struct elf_function found[WANTED_NR] = {0};
	struct alloc_object *object = NULL;
	bool left = false;
	int fd = target_open_mapped(s->target, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);

	if (elf)
		read_functions(s, elf, m, found);
	if (s->whole && !(found[WANTED_MALLOC].found && found[WANTED_FREE].found))
		memset(found, 0, sizeof(found));
	if (elf)
		left = cxx_operators_leave(elf, found);
	if (elf && is_new(s, found))
		object = object_for(a, s, m);
	if (object) {
		object->operators_left |= left;
		add_sites(s, object, found);
		sites_choose(object, elf);
		if (s->returns != RETURNS_PROBE)
			sites_find_returns(object, elf,
					   s->returns == RETURNS_RET ? SITES_ALL
								     : sites_without_probe(elf));
	}
	elf_end(elf);
	if (object && object->fd < 0)
		object->fd = fd;
	else if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static bool is_static(const struct search *s)
{
	return s->objects->program && !s->objects->loader &&
	       file_is(s->target, s->objects->program, elf_lacks_loader);
}

/* Look through the objects as the dynamic loader does.  What comes behind the C library is not
 * found by it either, unless the C library has no malloc. */
static void search_all(struct search *s, struct allocators *a)
{
	for (size_t i = 0; i < s->objects->nr; i++) {
		const struct mlk_mapping *m = s->objects->v[i];
		int err = search_object(s, a, m);

		if (err && (m == s->objects->program || target_is_libc(m->path)) &&
		    !s->target->hushed && !target_is_ending(s->target))
			log_warn("cannot search for malloc in '%s', mapped by process %d: %s",
				 m->path, (int)s->target->pid,
				 err == -ESTALE ? "the file was replaced" : strerror(-err));
		if (s->taken[WANTED_MALLOC] && (s->prefixed || target_is_libc(m->path)))
			return;
	}
}

/* Is @path that of a library or program called @name, as libc.so.6, or libjemalloc.so of any
 * version? */
static bool is_called(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(name);

	if (path[0] != '/' || strncmp(base, name, len) != 0)
		return false;
	return !base[len] || (base[len] == '.' && strstr(name, ".so"));
}

/* The executable mapping of the file that is called @name.  *@other: that of another one that is,
 * too; NULL: there is none. */
static const struct mlk_mapping *mapped_name(const struct maps *maps, const char *name,
					     const struct mlk_mapping **other)
{
	const struct mlk_mapping *found = NULL;

	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		if (!(m->perms & MLK_PERM_X) || !is_called(m->path, name))
			continue;
		if (found && strcmp(found->path, m->path) != 0) {
			*other = m;
			return found;
		}
		found = found ? found : m;
	}
	return found;
}

/* The executable mapping of the file @path. */
static const struct mlk_mapping *mapped_file(const struct search *s, const struct maps *maps,
					     const char *path)
{
	struct stat st[2];
	bool known[2];

	known[0] = !stat(path, &st[0]);
	known[1] = path[0] == '/' && !target_stat(s->target, HELPER_ROOT, path, &st[1]);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; known[k] && i < maps->nr; i++)
			if (maps->v[i].perms & MLK_PERM_X && maps->v[i].inode == st[k].st_ino)
				return &maps->v[i];
	return NULL;
}

/* The same of opts->object, which may be a name alone.  NULL after one sentence was logged, or the
 * process ends. */
static const struct mlk_mapping *object_mapping(const struct search *s, const struct maps *maps,
						const char *object)
{
	const struct mlk_mapping *m = mapped_file(s, maps, object), *other = NULL;
	bool quiet = s->target->hushed || target_is_ending(s->target);

	if (!m && !strchr(object, '/'))
		m = mapped_name(maps, object, &other);
	if (!m && !quiet)
		log_error("cannot probe '%s': process %d has not mapped it; /proc/%d/maps lists "
			  "its mappings",
			  object, (int)s->target->pid, (int)s->target->pid);
	if (!other)
		return m;
	if (!quiet)
		log_error("cannot probe '%s': process %d has mapped two files of this name, '%s' "
			  "and '%s'; give the path of one",
			  object, (int)s->target->pid, m->path, other->path);
	return NULL;
}

/* What is not found of a process on its way to its end was there: no word of it then. */
static int none_found(const struct target *t)
{
	return target_is_ending(t) ? -ESRCH : -ENOENT;
}

static int search_named(struct search *s, struct allocators *a, const struct maps *maps,
			const struct allocator_opts *opts)
{
	const struct mlk_mapping *m = object_mapping(s, maps, opts->object);
	int err;

	if (!m)
		return none_found(s->target);
	s->symtab = true;
	err = search_object(s, a, m);
	if (err && !s->target->hushed)
		log_error("cannot open '%s', mapped by process %d: %s", opts->object,
			  (int)s->target->pid, strerror(-err));
	if (!err && !s->taken[WANTED_MALLOC]) {
		if (!s->target->hushed)
			log_error("cannot probe '%s': it does not define %s", opts->object,
				  s->names[WANTED_MALLOC]);
		err = -ENOENT;
	}
	return err;
}

static int find(struct allocators *a, const struct target *t, const struct maps *maps,
		const struct loaded_objects *objects, const struct allocator_opts *opts)
{
	struct search s;
	bool no_loader;
	int err = 0;

	search_init(&s, t, objects, NULL, opts);
	no_loader = is_static(&s);
	s.symtab = no_loader;
	s.why = no_loader ? "the program is statically linked" : "first to define it";
	search_all(&s, a);
	if (opts->object) {
		search_init(&s, t, objects, opts->prefix, opts);
		s.why = "given by --obj";
		err = search_named(&s, a, maps, opts);
	} else if (opts->prefix) {
		search_init(&s, t, objects, opts->prefix, opts);
		s.why = "has names of that prefix";
		s.symtab = true;
		search_all(&s, a);
		if (!s.taken[WANTED_MALLOC])
			err = none_found(t);
		if (err == -ENOENT && !t->hushed)
			log_error("cannot probe process %d: none of its mapped files defines %s",
				  (int)t->pid, s.names[WANTED_MALLOC]);
	} else if (!s.taken[WANTED_MALLOC]) {
		err = none_found(t);
		if (err == -ENOENT && !t->hushed)
			allocators_explain_none(t, maps, objects, no_loader);
	}
	if (err)
		return err;
	allocators_set_code(a, t, objects, no_loader);
	if (!opts->object && !opts->prefix)
		allocators_tell_of_others(a, t, objects, "");
	if (opts->entries_alone)
		return 0;
	allocators_tell_of_operators(a);
	allocators_tell_of_second_traps(a);
	return allocators_tell_of_left(a);
}

int allocators_find(struct allocators *a, const struct target *t, const struct allocator_opts *opts)
{
	struct maps maps = {0};
	struct loaded_objects objects = {0};
	int err;

	memset(a, 0, sizeof(*a));
	err = target_read_maps(t, &maps);
	if (!err)
		err = link_map_read(&objects, t, &maps);
	/* Of one that has ended the caller knows, or will.  It may have been refused meanwhile. */
	if (err && err != -ESRCH && err != -ENOENT && target_is_ending(t))
		err = -ESRCH;
	if (err && err != -ESRCH && err != -ENOENT && !t->hushed)
		log_error("cannot read the mappings of process %d: %s", (int)t->pid,
			  strerror(-err));
	if (!err)
		err = find(a, t, &maps, &objects, opts);
	a->guessed = objects.guessed;
	link_map_release(&objects);
	maps_release(&maps);
	return err;
}

void allocators_find_in(struct allocators *a, const struct target *t, const struct mlk_mapping *m,
			const struct allocator_opts *opts)
{
	const struct loaded_objects none = {0};
	struct search s;

	memset(a, 0, sizeof(*a));
	for (int prefixed = 0; prefixed < (opts->prefix ? 2 : 1); prefixed++) {
		search_init(&s, t, &none, prefixed ? opts->prefix : NULL, opts);
		for (size_t i = 0; i < WANTED_NR; i++)
			s.taken[i] |= wanted[i].group == WANTED_MAP;
		s.whole = true;
		s.symtab = prefixed;
		search_object(&s, a, m);
	}
}

void allocators_tell_of_prefixed(const struct target *t)
{
	const struct allocators none = {0};
	struct loaded_objects objects = {0};
	struct maps maps = {0};

	if (!target_read_maps(t, &maps) && !link_map_read(&objects, t, &maps))
		allocators_tell_of_others(&none, t, &objects, "by eBPF, as root, ");
	link_map_release(&objects);
	maps_release(&maps);
}
