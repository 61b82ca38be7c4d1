/* kmem_forms.h - what the tracepoints on this kernel's allocations tell, and which programs it
 * takes */
#ifndef RECORD_KMEM_FORMS_H
#define RECORD_KMEM_FORMS_H

#include <bpf/btf.h>
#include <stdbool.h>

struct kmem_bpf; /* the skeleton of bpf/kmem.bpf.c */

/* Have the programs of @skel, which are not loaded yet, read the arguments as @btf, the kernel's,
 * tells them.  Returns 0, -ENOENT: it has no such tracepoints, or -EOPNOTSUPP, which was logged. */
int kmem_forms_choose(struct kmem_bpf *skel, const struct btf *btf);

/* May programs stand at the beginning of the kernel's functions?  Some kernels and machines refuse
 * them all. */
bool kmem_forms_take_functions(const struct btf *btf);

#endif
