/* halves.h - what the stubs call, in C
 *
 * Each has the arguments of the changed function and then what the stub saved, and returns what the
 * function did.
 */
#ifndef INJECTED_HALVES_H
#define INJECTED_HALVES_H

#include "record/injected/visit.h"

/* halves.c */
void *half_malloc(size_t size, const struct caller *c);
void *half_calloc(size_t nr, size_t size, const struct caller *c);
void *half_realloc(void *old, size_t size, const struct caller *c);
void *half_reallocarray(void *old, size_t nr, size_t size, const struct caller *c);
void half_free(void *block, uint64_t second, uint64_t third, const struct caller *c);
int half_posix_memalign(void **out, size_t align, size_t size, const struct caller *c);
void *half_aligned_alloc(size_t align, size_t size, const struct caller *c);
void *half_new_nothrow(size_t size, uint64_t second, uint64_t third, const struct caller *c);
/* NULL: the operator itself is to be called. */
void *half_new(size_t size, const struct caller *c);
void *half_new_aligned(size_t size, uint64_t align, const struct caller *c);

/* mappings.c */
void *half_mmap(void *addr, size_t size, int prot, int flags, int fd, int64_t offset,
		const struct caller *c);
void *half_mremap(void *old, size_t old_size, size_t size, int flags, void *to,
		  const struct caller *c);
int half_munmap(void *addr, size_t size, const struct caller *c);
int half_mprotect(void *addr, size_t size, int prot, const struct caller *c);
int half_madvise(void *addr, size_t size, int advice, const struct caller *c);

/* loader.c: modules have come or gone, or are about to */
void half_loader(const struct caller *c);

/* The call that @c made, which counts, has allocated @block. */
void injected_record(enum event_func func, const void *block, size_t size, const struct caller *c);

#endif
