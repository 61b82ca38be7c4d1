/* root_names.h - what holds blocks from outside of them: variables, stacks, mappings, registers */
#ifndef REPORT_ROOT_NAMES_H
#define REPORT_ROOT_NAMES_H

#include "report/reach/graph/reach_pass.h"
#include "report/reach/variables.h"

/* What a root is. */
enum root_kind {
	ROOT_OTHER,
	ROOT_VARIABLE,
	ROOT_THREAD_LOCAL, /* a variable that each thread has */
	ROOT_DATA,   /* of a program or library, or of another file, where no variable is known */
	ROOT_STACK,  /* of a thread, and what lies behind it: other thread-local data */
	ROOT_MEMORY, /* anonymous, and no block that was recorded */
	ROOT_REGISTERS,
	ROOT_EPOLL,	   /* data of an epoll_event */
	ROOT_TIMER,	   /* sigval of a timer */
	ROOT_SIGNAL_STACK, /* a thread's alternate stack for signals, which the kernel knows */
};

/* A root.  Strings are raw. */
struct root_name {
	enum root_kind kind;
	bool stale;	     /* freed memory, or the unused part of a stack */
	uint64_t start, end; /* of a variable that all share, or of what is mapped; else 0 */
	uint32_t number;     /* of the thread, the descriptor or the timer; else 0 */
	char *name;	     /* of a variable, demangled; of memory as the kernel has it; else "" */
	char *file;	     /* where a variable is defined; "": not known */
	char *path;	     /* of the program, library or other file; "": none */
};

struct root_names; /* opaque: those of one pass */

/* None yet.  @modules and the lists of @pass are borrowed until all words are numbered.  On failure
 * *@out is NULL.  Returns 0 or -ENOMEM. */
int root_names_new(struct root_names **out, const struct root_modules *modules,
		   const struct mlk_pass *pass);

/* These words of the pass will be numbered, where they are roots: to be called before.  Returns 0
 * or -ENOMEM. */
int root_names_note(struct root_names *names, const struct mlk_pointer *words, size_t nr);

/* For struct reach_roots, with a struct root_names as its arg. */
uint32_t root_names_number(void *names, enum reach_root kind, uint64_t where, bool stale);

/* Is the root @number a thread's stack, or its registers?  With a struct root_names as @names. */
bool root_names_is_stack(const void *names, uint32_t number);

/* Was memory short?  Returns 0 or -ENOMEM. */
int root_names_error(const struct root_names *names);

/* Those that were numbered so far, and the one with @number. */
uint32_t root_names_nr(const struct root_names *names);
const struct root_name *root_names_get(const struct root_names *names, uint32_t number);

/* NULL is allowed. */
void root_names_free(struct root_names *names);

#endif
