/* finders.h - the stacks that found overruns */
#ifndef REPORT_FINDERS_H
#define REPORT_FINDERS_H

#include "format/reader.h"
#include "report/replay/overruns.h"
#include "report/trace/address_spaces.h"

/* Unwind in @dw the stack that found each of @overruns, which are those of @trace, read once more
 * from its beginning.  Returns 0, -ENOMEM or -errno of read(2). */
int finders_unwind(struct overruns *overruns, struct mlk_reader *trace, struct dwunw *dw,
		   struct address_spaces *spaces);

#endif
