/* events_command.c - see events_command.h */
#include "report/events_command.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "cmdline/options.h"
#include "report/base/text.h"
#include "report/terminal/pager.h"
#include "report/trace/open_trace.h"
#include "report/trace/trace_gaps.h"

/* What the options say. */
struct wishes {
	bool help, follow;
};

static int apply_option(void *ctx, const struct option_info *o, const char *text)
{
	struct wishes *wishes = ctx;

	(void)text;
	if (o->key == 'h')
		wishes->help = true;
	else
		wishes->follow = true;
	return 0;
}

/* The pager would wait for the end of what is followed. */
static int finish_output(const struct wishes *wishes)
{
	return wishes->follow ? print_finish(EXIT_OK) : pager_finish();
}

int events_command(int argc, char **argv, const struct events_command *command)
{
	struct wishes wishes = {0};
	struct mlk_reader *trace = NULL;
	char *shown;
	int err, status;

	signal(SIGPIPE, SIG_IGN);
	if (options_read(command->rows, false, argc, argv, apply_option, &wishes))
		return EXIT_USAGE;
	if (wishes.help) {
		fputs(command->help, stdout);
		print_options(command->rows);
		return pager_finish();
	}
	if (argc - optind != 1) {
		log_error("usage: mleak %s FILE", argv[0]);
		return EXIT_USAGE;
	}
	shown = text_escape(argv[optind]);
	status = shown ? open_trace(&trace, argv[optind], shown) : EXIT_FAILED;
	if (status == EXIT_OK) {
		err = command->print(trace, wishes.follow);
		if (err)
			log_error("cannot read '%s' at byte %" PRIu64 ": %s", shown,
				  mlk_reader_offset(trace), mlk_strerror(err));
		status = err ? EXIT_USAGE : finish_output(&wishes);
		/* who reads no more of it needs no warning */
		if (!err && command->warns && !ferror(stdout))
			warn_of_gaps(shown, trace, mlk_reader_condition(trace), "events");
	}
	mlk_reader_free(trace);
	free(shown);
	return status;
}

static const struct option_info help_row = {.key = 'h', .name = "help", .help = "print this help"};

bool info_option(size_t i, struct option_info *option)
{
	*option = help_row;
	return i == 0;
}

bool script_option(size_t i, struct option_info *option)
{
	*option = i ? help_row
		    : (struct option_info){
			      .key = 'f',
			      .name = "follow",
			      .help = "go on while the trace is being written, until its "
				      "recording ends"};
	return i < 2;
}
