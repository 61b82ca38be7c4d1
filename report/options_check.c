/* options_check.c - which options of a report go together */
#include <errno.h>

#include "mleak.h"
#include "report/options.h"

int report_opts_check(const struct report_opts *opts)
{
	int tables = (opts->by != GROUP_NONE) + opts->growth + opts->timeline;
	bool plain = opts->format == FORMAT_TREE || opts->format == FORMAT_CSV;

	if (opts->before &&
	    (opts->view.cost || tables || opts->dump ||
	     (!plain && opts->format != FORMAT_FOLDED && opts->format != FORMAT_JSON))) {
		log_error("a difference is text, or with --folded, --format=csv or --format=json, "
			  "of what is outstanding");
		return -EINVAL;
	}
	if (opts->view.cost != COST_OUTSTANDING && (opts->format != FORMAT_FOLDED || tables)) {
		log_error("--cost is for --folded alone");
		return -EINVAL;
	}
	if (opts->temporary_ns && opts->view.cost != COST_TEMPORARY &&
	    opts->format != FORMAT_JSON && (opts->format != FORMAT_CSV || tables)) {
		log_error("--temporary is for --folded --cost temporary, and for the formats json "
			  "and csv");
		return -EINVAL;
	}
	if (tables > 1) {
		log_error("--by, --growth and --timeline are one at a time");
		return -EINVAL;
	}
	if (tables && !plain) {
		log_error("--by, --growth and --timeline are for text, or with --format=csv");
		return -EINVAL;
	}
	return 0;
}
