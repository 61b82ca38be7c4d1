/* command.c - see command.h */
#include "report/command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/memory.h"
#include "report/terminal/pager.h"

int command_run(int argc, char **argv, int (*run)(const struct report_opts *opts))
{
	struct report_opts opts;
	int err, status;

	/* `mleak report | head` is to end by pager_finish(), not by the signal */
	signal(SIGPIPE, SIG_IGN);
	err = report_opts_parse(&opts, argc, argv);
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
		memory_limit(opts.max_memory);
		status = run(&opts);
	}
	report_opts_release(&opts);
	return status;
}
