/* growth_save.h - what is known of growth, as bytes and back */
#ifndef REPORT_GROWTH_SAVE_H
#define REPORT_GROWTH_SAVE_H

#include "report/base/save.h"
#include "report/stats/growth.h"

/* Append what @growth knows, after growth_finish(). */
void growth_save(const struct growth *growth, struct save *to);

/* Read that into @growth, which is new, of stacks with numbers below @nr_stacks: it is then as it
 * was before growth_finish().  Returns 0, -ENOMEM, or MLK_E_CORRUPT. */
int growth_load(struct growth *growth, struct load *from, size_t nr_stacks);

#endif
