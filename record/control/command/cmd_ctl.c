/* cmd_ctl.c - `mleak ctl`: ask a recorder that runs, and change what it records */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline/options.h"
#include "cmdline/values.h"
#include "mleak.h"
#include "record/control/client.h"
#include "record/control/command/ctl_choose.h"
#include "record/control/request.h"
#include "record/filter/filters.h"

#define MOST_ACTIONS 64

static const struct option_info table[] = {
	{.key = CTL_STATUS,
	 .name = "status",
	 .help = "show what is recorded and where it goes; so does no action at all",
	 .group = "Actions, done in their order"},
	{.key = CTL_THREAD,
	 .name = "thread",
	 .arg = "TID|NAME|all[=MODE]",
	 .help = "from now on record these threads, or with =counted only count what they "
		 "allocate; all forgets what was chosen before"},
	{.key = CTL_PROCESS,
	 .name = "process",
	 .arg = "PID[=MODE]",
	 .help = "the same of a recorded process; what is chosen of its threads goes before"},
	{.key = CTL_SITE,
	 .name = "site",
	 .arg = "ADDRESS|FUNCTION[=MODE]",
	 .help = "the same of calls that return to this address, or into this function "
		 "(FUNCTION+0xN: to there alone); goes before all else"},
	{.key = CTL_TRIGGER,
	 .name = "trigger",
	 .arg = "BYTES|KIND:BYTES",
	 .help = "change what --trigger of the recording says; none in place of BYTES: never"},
	{.key = CTL_MARK,
	 .name = "mark",
	 .arg = "TEXT",
	 .help = "mark this moment in the trace, as SIGUSR2 does without a text"},
	{.key = CTL_SWITCH,
	 .name = "switch",
	 .help = "begin another trace, where --switch-output is on"},
	{.key = CTL_REACH,
	 .name = "reach",
	 .help = "read the pointers in memory now, where --reach is on"},
	{.key = 'h', .name = "help", .help = "print this help", .group = "Other"},
};

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

bool ctl_option(size_t i, struct option_info *option)
{
	if (i < NR_OPTIONS)
		*option = table[i];
	return i < NR_OPTIONS;
}

/* An action, as the command line has it. */
struct action {
	const struct option_info *option;
	const char *text;
};

/* What the command line says, and who is asked. */
struct ctl {
	struct action actions[MOST_ACTIONS];
	size_t nr;
	bool help;
	struct ctl_asked asked;
};

static int note_action(void *ctx, const struct option_info *option, const char *text)
{
	struct ctl *c = ctx;

	if (option->key == 'h') {
		c->help = true;
		return 0;
	}
	if (c->nr == MOST_ACTIONS) {
		log_error("more than %d actions are given: call 'mleak ctl' several times",
			  MOST_ACTIONS);
		return -EINVAL;
	}
	for (size_t i = 0; i < NR_OPTIONS; i++)
		if (table[i].key == option->key)
			c->actions[c->nr++] = (struct action){&table[i], text};
	return 0;
}

static int print_help(void)
{
	puts("usage: mleak ctl PID [ACTION...]\n\n"
	     "Asks the recorder PID, or the recorder of process PID, while it records.  Only its "
	     "user\n"
	     "and root may.  MODE is recorded (if it is left out) or counted.  To choose what is\n"
	     "recorded needs a recording with --choose, --trigger or --tid.\n");
	print_options(ctl_option);
	puts("\nThe exit status is 0, or 2 when an action was refused; those before it are done.");
	return print_finish(EXIT_OK) ? EXIT_FAILED : EXIT_OK;
}

static int change_trigger(struct ctl_asked *c, const struct option_info *option, const char *text)
{
	static const char *const kinds[TRIGGER_NR] = {"thread", "process", "site"};
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	enum choice_trigger trigger;
	uint64_t bytes;

	if (!strcmp(colon ? colon + 1 : text, "none"))
		for (int i = 0; i < TRIGGER_NR; i++)
			if (!colon || (len == strlen(kinds[i]) && !memcmp(text, kinds[i], len)))
				return ctl_ask(c, "trigger %s none", kinds[i]);
	if (filters_read_trigger(text, &trigger, &bytes))
		return option_refuse(option,
				     "bytes from 1 on or none, as 10M for threads, process:10M, "
				     "site:none",
				     text);
	return ctl_ask(c, "trigger %s %" PRIu64, kinds[trigger], bytes);
}

static int mark(struct ctl_asked *c, const char *text)
{
	for (const char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at)) {
			log_error("the text of a mark is one line, without control characters");
			return -EINVAL;
		}
	if (strlen(text) > CONTROL_MAX_MARK) {
		log_error("the text of a mark has at most %d bytes", CONTROL_MAX_MARK);
		return -EINVAL;
	}
	return ctl_ask(c, "mark %s", text);
}

/* Print @text, whose lines are cut. */
static void print_lines(char *text)
{
	char *rest = text;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		if (!*line)
			continue;
		print_harmless(stdout, line);
		putchar('\n');
	}
	fflush(stdout); /* before what is said of the next one */
}

/* Ask, and print the answer. */
static int show(struct ctl_asked *c, const char *request)
{
	int err = ctl_ask(c, "%s", request);

	if (!err)
		print_lines(c->peer.answer);
	return err;
}

static int act(struct ctl_asked *c, const struct action *a)
{
	switch (a->option->key) {
	case CTL_TRIGGER:
		return change_trigger(c, a->option, a->text);
	case CTL_MARK:
		return mark(c, a->text);
	case CTL_SWITCH:
		return ctl_ask(c, "switch");
	case CTL_REACH:
		return ctl_ask(c, "reach");
	case CTL_STATUS:
		return show(c, "status");
	default:
		return ctl_choose(c, a->option, a->text);
	}
}

/* Read the number of a process, the one word beside the actions. */
static int read_pid(struct ctl *c, int argc, char **argv)
{
	uint64_t pid = 0;

	if (optind != argc - 1) {
		log_error("%s: 'mleak ctl PID ACTION...'",
			  optind == argc ? "give the number of a recorder, or of a process that it "
					   "records"
					 : "give one process, and each action with its dashes");
		return -EINVAL;
	}
	if (value_number(argv[optind], &pid) || !pid || pid > INT32_MAX) {
		log_error("'%s' is no number of a process: give that of a recorder, or of a "
			  "process that it records",
			  argv[optind]);
		return -EINVAL;
	}
	c->asked.pid = (pid_t)pid;
	return 0;
}

int cmd_ctl(int argc, char **argv)
{
	struct ctl c = {.asked = {.peer = {.socket = -1}}};
	int err = options_read(ctl_option, false, argc, argv, note_action, &c);

	if (!err && c.help)
		return print_help();
	if (!err)
		err = read_pid(&c, argc, argv);
	if (!err)
		err = control_find(&c.asked.peer, c.asked.pid);
	if (!err && !c.nr)
		err = show(&c.asked, "status");
	for (size_t i = 0; i < c.nr && !err; i++)
		err = act(&c.asked, &c.actions[i]);
	control_leave(&c.asked.peer);
	return err ? EXIT_USAGE : print_finish(EXIT_OK);
}
