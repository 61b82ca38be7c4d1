/* code_lines.h - the line of a place in an interpreted function */
#ifndef REPORT_CODE_LINES_H
#define REPORT_CODE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "format/code.h"

/* The line at @offset, bytes into the instructions of @code, from 1; 0: not known. */
uint32_t code_line(const struct mlk_code *code, uint32_t offset);

#endif
