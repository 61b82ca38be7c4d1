/* group_columns.h - the lists of threads, processes, caches and control groups */
#ifndef REPORT_GROUP_COLUMNS_H
#define REPORT_GROUP_COLUMNS_H

#include "report/top/screen/screen_state.h"

/* Put the names of the columns in line @y; that which sorts has a mark. */
void group_columns_head(const struct screen *screen, int y);

/* Put group @i of the page in view in line @y.  Returns 0 or -ENOMEM. */
int group_columns_row(const struct screen *screen, int y, size_t i);

#endif
