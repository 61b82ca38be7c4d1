/* allocator.h - the functions of a process that allocate: where in its files their probes are */
#ifndef RECORD_ALLOCATOR_H
#define RECORD_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/code/returns.h"
#include "record/target/target.h"

#define ALLOCATOR_MAX_SITES   56
#define ALLOCATOR_MAX_OBJECTS 8

/* Is it examined when entered and when it returns, or only when entered? */
enum site_kind { SITE_ALLOC, SITE_FREE };

/* A probed function of a file, and the instruction in it that the probe of its entry is on. */
struct alloc_site {
	char name[64];
	uint32_t func; /* enum event_func */
	enum site_kind kind;
	unsigned int nr_args; /* that the programs look at */
	uint64_t function;    /* where it begins in the file */
	uint64_t size;	      /* bytes */
	uint64_t offset;      /* from there to the probed instruction */
	bool emulated;	      /* a cheap one, see probe_site.h */
	uint32_t moved;	      /* where the arguments are there, see event_moved() */
	bool jumped_to;	      /* a better one was found, but something jumps there */
	bool by_ret;	      /* its returns are among the object's, there is no return probe */
	uint8_t bytes[12];    /* the function's first */
	uint8_t nr_bytes;
};

/* A file with functions to be probed. */
struct alloc_object {
	struct mlk_mapping code; /* its executable mapping; its path is the one below */
	int fd;			 /* the very file that is mapped */
	bool is_program;
	bool operators_left; /* not probed, because they call its malloc */
	char left[64]; /* a function that is not probed: its returns are not known; "": none */
	const char *why_left; /* they are not: static text */
	bool malloc_left;
	const char *why; /* it is probed: static text */
	char *path;
	struct alloc_site sites[ALLOCATOR_MAX_SITES];
	size_t nr;
	struct returns returns; /* of the functions without return probes */
};

/* All files of a process with functions to be probed; owns their descriptors and paths. */
struct allocators {
	struct alloc_object v[ALLOCATOR_MAX_OBJECTS];
	size_t nr;
	struct event_code code; /* for the BPF programs */
	bool guessed;		/* the order of look-up could not be read */
};

/* How it is seen what a function returns. */
enum returns_by {
	RETURNS_AUTO,  /* by return probes where they do no harm */
	RETURNS_RET,   /* by probes on the instructions by which it returns */
	RETURNS_PROBE, /* by return probes: should an exception leave an operator new, or a handler
			  on an alternate stack allocate, it ends the target */
};

struct loaded_objects;

/* What the user wants probed, and how; the strings are borrowed. */
struct allocator_opts {
	const char *object; /* probe this file's functions too; NULL: none */
	const char *prefix; /* and those whose names begin so; NULL: none */
	bool no_operators;  /* leave operator new and delete alone, whichever file defines them */
	enum returns_by returns;
	bool spares_handlers; /* return probes do no harm to a handler on an alternate stack */
	bool entries_alone;   /* nothing is probed: how functions return does not matter */
};

/*
 * Find the functions that the program's calls lead to: of each name the first that is defined, in
 * the order of the dynamic loader's look-up; of a statically linked program its own.  Besides, what
 * @opts ask for.
 *
 * On failure one sentence was logged.  allocators_release() in any case.  Returns 0 or -errno.
 */
int allocators_find(struct allocators *a, const struct target *t,
		    const struct allocator_opts *opts);

/* The same of one file, mapped at @m in whatever order it was loaded: has it functions malloc and
 * free for others, or with the prefix of @opts?  *@a has no object if it has not.  Without a word.
 * allocators_release() in any case. */
void allocators_find_in(struct allocators *a, const struct target *t, const struct mlk_mapping *m,
			const struct allocator_opts *opts);

/* Functions that allocate, by the names under which allocators are built; malloc is the first. */
#define ALLOCATOR_NAMES 9
extern const char *const allocator_names[ALLOCATOR_NAMES];

/* Is a function probed of the file that @m is a mapping of? */
bool allocators_probe_file(const struct allocators *a, const struct mlk_mapping *m);

/* Where nothing is probed, as the preloaded library records: say once that a process has an
 * allocator under another name than malloc, which the library does not see. */
void allocators_tell_of_prefixed(const struct target *t);

/* Make @to a copy of @from, with descriptors of its own: what a child of fork has.
 * allocators_release() in any case.  Returns 0 or -errno. */
int allocators_copy(struct allocators *to, const struct allocators *from);

/* Are the same functions of the same file probed by both? */
bool alloc_object_same(const struct alloc_object *a, const struct alloc_object *b);

/* Are the same functions of the same files probed by both? */
bool allocators_same(const struct allocators *a, const struct allocators *b);

/* Close the files of @a; it has no objects then. */
void allocators_release(struct allocators *a);

/* Where a process's allocators and its own code lie, for the BPF programs, which by that tell an
 * allocator's mappings from the program's: set a->code by the objects of @a and those that @t has
 * loaded, @objects. */
void allocators_set_code(struct allocators *a, const struct target *t,
			 const struct loaded_objects *objects, bool is_static);

#endif
