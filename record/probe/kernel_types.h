/* kernel_types.h - of the kernel's own description of its types, what the BPF programs ask for */
#ifndef RECORD_KERNEL_TYPES_H
#define RECORD_KERNEL_TYPES_H

#include <stddef.h>

struct btf;

/*
 * Write to the file @fd those types that BPF programs are adjusted to when they are loaded: the
 * structures, unions and enumerations of the running kernel whose names are also in the programs'
 * own types, @ours.  The kernel has a hundred thousand types.  For libbpf to read them all, and to
 * search them for each name, takes more than half as long as the verifier.
 *
 * The file is for bpf_object_open_opts.btf_custom_path.  Returns 0 or -errno, -EBADMSG where the
 * kernel's types are not understood: libbpf can read them itself then.
 */
int kernel_types_write(int fd, const struct btf *ours);

/* The same of the @len bytes at @kernel, as /sys/kernel/btf/vmlinux has them. */
int kernel_types_reduce(int fd, const void *kernel, size_t len, const struct btf *ours);

#endif
