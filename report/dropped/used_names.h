/* used_names.h - of a module's image what names the functions that stacks have, and nothing else */
#ifndef REPORT_USED_NAMES_H
#define REPORT_USED_NAMES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Make zero what the ELF image of @len bytes at @image has beside the names of the functions in
 * which the @nr addresses at @addrs lie: tables for unwinding, other names, code.  The addresses
 * are in ascending order, as the image counts them; headers, notes and debug information stay.
 *
 * An image that libelf cannot read stays as it is.  Returns 0 or -ENOMEM.
 */
int used_names_keep(uint8_t *image, size_t len, const uint64_t *addrs, size_t nr);

#endif
