/* code_mapping.h - an executable mapping of a trace as the unwinder is to have it */
#ifndef REPORT_CODE_MAPPING_H
#define REPORT_CODE_MAPPING_H

#include "format/trace.h"
#include "report/trace/trace_modules.h"

/* Copy @from to *@to, which is zero; its module is a number of @images, or DWUNW_NO_MODULE where it
 * is a thing of the kernel's, or memory of no file: that has code which the process generated.
 * Returns 0 or -ENOMEM. */
int code_mapping_copy(struct dwunw_mapping *to, const struct mlk_mapping *from,
		      struct trace_modules *images);

#endif
