/* verdict_options.h - what the options of verdicts do to struct report_opts */
#ifndef REPORT_VERDICT_OPTIONS_H
#define REPORT_VERDICT_OPTIONS_H

#include "cmdline/options.h"
#include "report/options/options.h"

/* Apply --verdict, --lost, --tag-mask or --root.  Returns 0, or -EINVAL: that was said on stderr.
 */
int apply_verdict(struct report_opts *opts, const struct option_info *o, const char *text);
int apply_lost(struct report_opts *opts, const struct option_info *o, const char *text);
int apply_tag_mask(struct report_opts *opts, const struct option_info *o, const char *text);
int apply_root(struct report_opts *opts, const struct option_info *o, const char *text);

#endif
