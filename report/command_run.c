/* command_run.c - the beginning and the end of each command that makes a report */
#include "report/report_run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/memory.h"
#include "report/base/sizes.h"
#include "report/name/short_name.h"
#include "report/terminal/pager.h"

int command_run(int argc, char **argv, int (*run)(const struct report_opts *opts))
{
	struct report_opts opts;
	int err, status;

	/* `mleak report | head` is to end by pager_finish(), not by the signal */
	signal(SIGPIPE, SIG_IGN);
	err = report_opts_parse(&opts, argc, argv);
	if (!err && !opts.help && strcmp(argv[0], "unwind") != 0) /* that makes no report */
		err = report_opts_cache(&opts);
	if (err) {
		status = err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
		if (err == -ENOMEM)
			log_error("cannot read the options: %s", strerror(ENOMEM));
	} else if (opts.help) {
		report_opts_print_help(argv[0]);
		status = pager_finish();
	} else {
		/* no library may go to the network by itself */
		if (!opts.debuginfod)
			unsetenv("DEBUGINFOD_URLS");
		opts.view.color = color_wanted(opts.color);
		opts.view.utf8 = lines_utf8(opts.lines);
		opts.view.columns = color_columns(); /* a pager has none */
		opts.view.rows = opts.no_limit || opts.view.top ? 0 : color_rows();
		sizes_set_exact(opts.exact);
		if (opts.full_names)
			short_names_disable();
		memory_limit(opts.max_memory);
		status = run(&opts);
	}
	report_opts_release(&opts);
	return status;
}
