/* relocated.h - debug information of a file that was not linked, as modules of the kernel are */
#ifndef DWUNW_RELOCATED_H
#define DWUNW_RELOCATED_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwunw_relocated; /* opaque */

/* Give the sections of the file open at @fd, which stays the caller's, addresses of our own choice.
 * *@out is NULL on failure.  Returns 0, -ENOMEM, or -EINVAL: its debug information cannot be read.
 */
int dwunw_relocated_new(struct dwunw_relocated **out, int fd);

/* Its debug information, valid until dwunw_relocated_free(). */
Dwarf *dwunw_relocated_dwarf(const struct dwunw_relocated *file);

/* The address there of the function @name, of @len characters; false if there is none, or several:
 * they would have to be told apart by what nobody knows. */
bool dwunw_relocated_find(const struct dwunw_relocated *file, const char *name, size_t len,
			  uint64_t *addr);

/* Release @file; NULL is allowed. */
void dwunw_relocated_free(struct dwunw_relocated *file);

#endif
