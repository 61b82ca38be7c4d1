/* dump_reach.h - the part of a dump that tells of pointers in memory */
#ifndef REPORT_DUMP_REACH_H
#define REPORT_DUMP_REACH_H

#include <stdio.h>

#include "format/reach.h"

/* Write each word, or what a pass walked through, to @out. */
void dump_pointers(FILE *out, const struct mlk_pointers *pointers);
void dump_pass(FILE *out, const struct mlk_pass *pass);

#endif
