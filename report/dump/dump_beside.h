/* dump_beside.h - records beside events, as --dump prints them */
#ifndef REPORT_DUMP_BESIDE_H
#define REPORT_DUMP_BESIDE_H

#include <stdio.h>

#include "format/regions.h"

/* A line each: of a sample, what was counted of a thread, and a mark. */
void dump_memory(FILE *out, const struct mlk_memory *m);
void dump_account(FILE *out, const struct mlk_account *a);
void dump_mark(FILE *out, const struct mlk_mark *m);

/* Three lines: what was lost, and what was not recorded on purpose. */
void dump_losses(FILE *out, const struct mlk_losses *losses);

/* A line, and one of each mapping. */
void dump_regions(FILE *out, const struct mlk_regions *regions);

#endif
