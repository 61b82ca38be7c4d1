/* allocator.h - the functions of an allocator: where in its file their probes stand */
#ifndef RECORD_ALLOCATOR_H
#define RECORD_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATOR_MAX_SITES 12

struct alloc_site {
	const char *name;     /* static */
	uint32_t func;	      /* enum event_func; 0: free */
	uint64_t file_offset; /* of the instruction the probe stands on */
	bool emulated;	      /* a cheap one, see probe_site.h */
};

struct allocator {
	struct alloc_site sites[ALLOCATOR_MAX_SITES];
	size_t nr;
};

/*
 * Find the allocator's functions in the ELF file @fd, which is named @path in messages.
 * On failure one sentence was logged.  Returns 0, -ENOEXEC (no ELF file for x86-64) or -ENOENT (a
 * function that must be there is missing).
 */
int allocator_find(struct allocator *a, int fd, const char *path);

#endif
