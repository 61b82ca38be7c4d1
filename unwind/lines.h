/* lines.h - source file and line of an address */
#ifndef DWUNW_LINES_H
#define DWUNW_LINES_H

#include <elfutils/libdw.h>
#include <stdint.h>

struct dwunw_lines;

/* @dwarf is borrowed until dwunw_lines_free().  Returns 0, or -ENOMEM with *out NULL. */
int dwunw_lines_new(struct dwunw_lines **out, Dwarf *dwarf);
void dwunw_lines_free(struct dwunw_lines *lines);

/* Where @addr, as the file counts it, comes from; *file is valid as long as the Dwarf.  NULL and 0
 * if that is not known.  Returns 0 or -ENOMEM. */
int dwunw_lines_find(struct dwunw_lines *lines, uint64_t addr, const char **file, uint32_t *line);

#endif
