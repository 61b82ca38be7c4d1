/* allocator_explain.c - see allocator_explain.h */
#include "record/allocator/allocator_explain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "mleak.h"
#include "record/module/module_table.h"

/* The first mapping of the C library or the program whose code has been moved to anonymous memory,
 * as is done for huge pages; NULL: there is none. */
static const struct mlk_mapping *find_moved(const struct maps *maps, const struct target *t)
{
	for (size_t i = 0; i + 1 < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i], *next = &maps->v[i + 1];

		/* between its first and its next mapping */
		if (m->inode && !(m->perms & MLK_PERM_X) && next->start == m->end && !next->inode &&
		    next->perms & MLK_PERM_X &&
		    (target_is_libc(m->path) || !strcmp(m->path, t->exe)))
			return m;
	}
	return NULL;
}

void allocators_explain_none(const struct target *t, const struct maps *maps,
			     const struct loaded_objects *objects, bool is_static)
{
	int pid = (int)t->pid;
	const struct mlk_mapping *program = objects->program, *moved = find_moved(maps, t);

	/* what could be read of one that ends is not what it was */
	if (target_has_ended(t) || target_is_ending(t))
		log_error("cannot record process %d: it has ended", pid);
	else if (moved)
		log_error("cannot record process %d: it has moved the code of '%s' to anonymous "
			  "memory (as for huge pages), where the kernel cannot place probes; "
			  "restart it with --backend preload to record it",
			  pid, moved->path);
	else if (is_static)
		log_error("cannot record process %d: '%s' is statically linked and none of its "
			  "symbols names malloc; it has none, as Go programs without cgo, or is "
			  "stripped and needs its debug file",
			  pid, program->path);
	else
		log_error("cannot record process %d: none of its mapped files is a 64-bit x86-64 "
			  "ELF file that defines malloc; name an object with -O FILE, or a prefix "
			  "with --prefix",
			  pid);
}

void allocators_tell_of_operators(const struct allocators *a)
{
	static bool told;

	for (size_t i = 0; i < a->nr && !told; i++)
		for (size_t k = 0; k < a->v[i].nr && !told; k++) {
			const struct alloc_site *site = &a->v[i].sites[k];

			if (site->func != FUNC_NEW || site->by_ret)
				continue;
			told = true;
			log_info("operator new of '%s' has a return probe: if it throws "
				 "std::bad_alloc, the program is aborted; leave --returns=probe "
				 "out, or add --no-operators",
				 a->v[i].path);
		}
}

int allocators_tell_of_left(const struct allocators *a)
{
	static bool told;

	for (size_t i = 0; i < a->nr; i++) {
		const struct alloc_object *o = &a->v[i];

		if (o->malloc_left) {
			log_error("cannot probe malloc of '%s' without a return probe: %s; "
				  "--returns=probe can, but if a signal handler on an alternate "
				  "stack allocates, the program may be killed",
				  o->path, o->why_left);
			return -ENOTSUP;
		}
		if (!o->left[0] || told)
			continue;
		told = true;
		log_warn("%s of '%s' is not probed because %s: its blocks are not recorded",
			 o->left, o->path, o->why_left);
	}
	return 0;
}

void allocators_tell_of_others(const struct allocators *a, const struct target *t,
			       const struct loaded_objects *objects, const char *what_to_do)
{
	/* Not malloc; nor dlmalloc, which libffi has for code that it makes. */
	enum { MALLOC, FIRST = 2 };
	const char *const *names = allocator_names;
	static bool told;

	for (size_t i = 0; i < objects->nr && !told && !t->hushed; i++) {
		const struct mlk_mapping *m = objects->v[i];
		struct elf_function found[ALLOCATOR_NAMES] = {0};
		const struct elf_names search = {names, ALLOCATOR_NAMES, found};

		if (allocators_probe_file(a, m))
			continue;
		module_functions(t, m, ELF_EXPORTED, &search);
		if (m == objects->program) /* all tables of all libraries would take long */
			module_functions(t, m, ELF_ALL, &search);
		for (size_t k = FIRST; k < ALLOCATOR_NAMES && !told; k++) {
			/* another name of malloc, as tcmalloc's, is no other allocator */
			if (!found[k].found || (found[MALLOC].found &&
						found[MALLOC].file_offset == found[k].file_offset))
				continue;
			told = true;
			log_warn("'%s' has another allocator, %s, whose blocks are not recorded; "
				 "%s--prefix %.*s records them",
				 m->path, names[k], what_to_do,
				 (int)(strstr(names[k], "malloc") - names[k]), names[k]);
		}
	}
}

/* The first of @o's functions that programs call all the time and whose probe costs a second trap;
 * NULL: there is none. */
static const struct alloc_site *single_stepped(const struct alloc_object *o)
{
	for (size_t i = 0; i < o->nr; i++) {
		const struct alloc_site *site = &o->sites[i];

		if (!site->emulated && (site->func == FUNC_MALLOC || site->func == FUNC_FREE))
			return site;
	}
	return NULL;
}

void allocators_tell_of_second_traps(const struct allocators *a)
{
	static bool told;

	for (size_t i = 0; i < a->nr && !told; i++) {
		const struct alloc_site *site = single_stepped(&a->v[i]);

		if (!site)
			continue;
		told = true;
		log_info("%s of '%s' begins with code that the kernel must single-step, so each "
			 "call costs a second trap; --dry-run shows all places",
			 site->name, a->v[i].path);
	}
}

static const char *cost(const struct alloc_site *site)
{
	if (site->emulated)
		return "emulated";
	return site->jumped_to ? "single-stepped: a jump leads to the cheaper place"
			       : "single-stepped: no known pattern";
}

/* Where @site's probe finds the arguments, if that is not where they were passed. */
static void print_moved(FILE *out, const struct alloc_site *site)
{
	static const char names[16][4] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					  "r8",	 "r9",	"r10", "r11", "r12", "r13", "r14", "r15"};

	for (unsigned int i = 0; site->moved && i < site->nr_args && i < EVENT_MOVED_ARGS; i++)
		fprintf(out, "%s %s", i ? "," : ", arguments in",
			names[event_moved_to(i, site->moved)]);
}

static const char *events(const struct alloc_site *site)
{
	if (site->kind == SITE_FREE)
		return "entry";
	return site->by_ret ? "entry+ret" : "entry+return";
}

static void print_site(FILE *out, const struct alloc_site *site)
{
	fprintf(out, "  %-38s 0x%-8" PRIx64 " +%-3" PRIu64 " %-13s ", site->name, site->function,
		site->offset, events(site));
	for (unsigned int i = 0; i < sizeof(site->bytes); i++)
		if (i < site->nr_bytes)
			fprintf(out, "%s%02x", i && i == site->offset ? "|" : "", site->bytes[i]);
		else
			fputs("  ", out);
	fprintf(out, "  %s", cost(site));
	print_moved(out, site);
	putc('\n', out);
}

/* The places at which functions without return probes return. */
static void print_returns(FILE *out, const struct returns *returns)
{
	size_t emulated = 0;

	for (size_t i = 0; i < returns->nr; i++)
		emulated += returns->v[i].how == RETURNS_SOON;
	if (returns->nr)
		fprintf(out,
			"  the functions marked ret: %zu return instruction%s, and %zu jump%s that "
			"%s emulated and tell the result before\n",
			returns->nr - emulated, returns->nr - emulated == 1 ? "" : "s", emulated,
			emulated == 1 ? "" : "s", emulated == 1 ? "is" : "are");
}

void dry_run_print(FILE *out, const struct target *t, const struct allocators *a)
{
	size_t nr = 0, emulated = 0;

	fprintf(out, "process %d (", (int)t->pid);
	print_harmless(out, t->comm);
	fprintf(out, ")%s\n",
		a->guessed ? "; the loader's list could not be read: objects in the order of "
			     "their addresses"
			   : "");
	for (size_t i = 0; i < a->nr; i++) {
		const struct alloc_object *o = &a->v[i];

		print_harmless(out, o->path);
		fprintf(out, ": %s\n", o->why);
		for (size_t k = 0; k < o->nr; k++) {
			print_site(out, &o->sites[k]);
			emulated += o->sites[k].emulated;
		}
		print_returns(out, &o->returns);
		if (o->left[0])
			fprintf(out, "  %s is not probed: %s\n", o->left, o->why_left);
		if (o->operators_left)
			fputs("  operator new and delete, which call these, are not probed\n", out);
		nr += o->nr;
	}
	fprintf(out,
		"%zu function%s; the kernel emulates the probed instruction of %zu, the other %zu "
		"cost a second trap\n",
		nr, nr == 1 ? "" : "s", emulated, nr - emulated);
}
