/* kallsyms.h - the kernel's functions by address: /proc/kallsyms and /proc/modules */
#ifndef RECORD_KALLSYMS_H
#define RECORD_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel itself is module 0. */
#define KALLSYMS_KERNEL 0

/* A function of the kernel or of a module. */
struct kallsym {
	uint64_t addr;
	uint32_t name;	 /* offset in names */
	uint32_t module; /* in which it is */
};

/* A module of the kernel, as [ext4]; or the kernel itself. */
struct kallsyms_module {
	const char *name;
	uint64_t start, end; /* [start, end) holds its code */
};

/* All of them, as they were read; it owns the names. */
struct kallsyms {
	struct kallsym *v; /* ascending */
	size_t nr, room;
	char *names;
	size_t names_len, names_room;
	struct kallsyms_module *modules;
	size_t nr_modules, modules_room;
	uint64_t text;	       /* address of _text; 0: not told */
	uint64_t vmemmap_base; /* addresses of these variables; 0: not told */
	uint64_t page_offset_base;
	uint64_t orc_ip, orc_ip_end,
		orc;	      /* tables of the kernel's unwinder: where they begin, end */
	uint64_t module_list; /* where the list of modules begins */
};

/* Read them.  *@out is released with kallsyms_free(), NULL on failure.  Returns 0, -ENOMEM, -errno,
 * or -EACCES: kernel.kptr_restrict hides the addresses. */
int kallsyms_read(struct kallsyms **out);

/* The memory of module @module, as "ext4", has @size bytes, the code first: its last function may
 * end behind the page that it begins in.  What another module has is not taken from it. */
void kallsyms_set_size(struct kallsyms *k, const char *module, uint64_t size);

/* Does /proc/kallsyms show addresses to this process? */
bool kallsyms_are_shown(void);

/* The last function that begins at @addr or before, in the same module; NULL: there is none. */
const struct kallsym *kallsyms_find(const struct kallsyms *k, uint64_t addr);

/* Its name; valid until kallsyms_free(). */
const char *kallsyms_name(const struct kallsyms *k, const struct kallsym *s);

/* Release @k; NULL is allowed. */
void kallsyms_free(struct kallsyms *k);

#endif
