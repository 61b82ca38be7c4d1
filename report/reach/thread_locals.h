/* thread_locals.h - the thread-local variables of a program, by address
 *
 * On x86-64 they lie below the thread pointer (ELF Handling For Thread-Local Storage, variant II),
 * at which glibc keeps the thread pointer itself, and 16 bytes behind that once more: so it is
 * found among the words.  Those of libraries have places that only the loader knows.
 */
#ifndef REPORT_THREAD_LOCALS_H
#define REPORT_THREAD_LOCALS_H

#include "report/reach/variables.h"

/* Of one pass.  All zero: none. */
struct thread_locals {
	/* Their start and end are distances below a thread pointer, end the smaller one; ascending
	 * by end. */
	struct variable *all;
	size_t nr, room;
	uint64_t size;	    /* of all of them, from the first byte to the thread pointer */
	uint64_t *pointers; /* thread pointers so far, ascending */
	size_t nr_pointers, room_pointers;
};

/* Find the variables of the program, which is the file with the lowest data in @pass.  @t is to be
 * released in any case.  Returns 0 or -ENOMEM. */
int thread_locals_find(struct thread_locals *t, const struct root_modules *modules,
		       const struct mlk_pass *pass);

/* Note the thread pointers among these words, which are behind those of earlier calls.  Returns 0
 * or -ENOMEM. */
int thread_locals_note(struct thread_locals *t, const struct mlk_pointer *words, size_t nr);

/* The place of the variable at @address, plus one; 0: none.  *@until: the end of it. */
size_t thread_locals_at(const struct thread_locals *t, uint64_t address, uint64_t *until);

/* Forget them. */
void thread_locals_release(struct thread_locals *t);

#endif
