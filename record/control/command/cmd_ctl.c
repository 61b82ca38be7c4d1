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
#include "record/base/proc.h"
#include "record/control/client.h"
#include "record/control/command/ctl_places.h"
#include "record/control/request.h"
#include "record/filter/filters.h"

#define MOST_ACTIONS 64

enum ctl_key {
	CTL_THREAD = 256,
	CTL_PROCESS,
	CTL_SITE,
	CTL_TRIGGER,
	CTL_MARK,
	CTL_SWITCH,
	CTL_STATUS
};

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

/* What the command line says, and the recorder. */
struct ctl {
	struct action actions[MOST_ACTIONS];
	size_t nr;
	bool help;
	pid_t pid;
	struct control_peer peer;
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

/* Ask, and say what is refused.  Returns 0 or -errno. */
#define ask(c, ...) explain_refusal(c, control_ask(&(c)->peer, __VA_ARGS__))

static int explain_refusal(const struct ctl *c, int result)
{
	if (result <= 0)
		return result;
	log_error("%s", c->peer.answer);
	return -EINVAL;
}

/* Has the process @pid ended? */
static bool has_ended(pid_t pid)
{
	char text[2048];
	const char *threads;
	int nr = 0;

	proc_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	threads = strstr(text, "\nThreads:");
	/* an ended main thread waits for the others */
	return !threads ||
	       (strstr(text, "\nState:\tZ") && sscanf(threads + 9, "%d", &nr) == 1 && nr <= 1);
}

/* Ask about the process @pid, or the thread @pid of one.  Returns 0, -ESRCH: it has ended
 * meanwhile, of which nothing is said, or -errno. */
#define ask_of(c, pid, ...) explain_unless_ended(c, pid, control_ask(&(c)->peer, __VA_ARGS__))

static int explain_unless_ended(const struct ctl *c, pid_t pid, int result)
{
	return result > 0 && has_ended(pid) ? -ESRCH : explain_refusal(c, result);
}

/* Cut the mode, if there is one, off the end of @text, to be freed by the caller; *mode is static.
 */
static char *cut_mode(const char *text, const char **mode)
{
	static const char *const modes[] = {"recorded", "counted"};
	char *copy = strdup(text), *equals = copy ? strrchr(copy, '=') : NULL;

	*mode = modes[0];
	for (int i = 0; equals && i < 2; i++)
		if (!strcmp(equals + 1, modes[i])) {
			*mode = modes[i];
			*equals = '\0';
			return copy;
		}
	return copy;
}

/* The processes that are recorded: those that the recorder was named by, or all.  Returns how many,
 * MOST_PIDS at most, or -errno. */
#define MOST_PIDS (CONTROL_MAX_ANSWER / 2)
static int recorded_pids(struct ctl *c, pid_t *pids)
{
	const char *at = c->peer.answer;
	int nr = 0, used, pid, err;

	if (c->peer.by_target) {
		pids[0] = c->pid;
		return 1;
	}
	err = ask(c, "pids");
	if (err)
		return err;
	for (; nr < MOST_PIDS && sscanf(at, " %d%n", &pid, &used) == 1; at += used)
		pids[nr++] = (pid_t)pid;
	return nr;
}

static bool is_called(pid_t pid, pid_t tid, const char *name)
{
	char comm[64];

	proc_read(comm, sizeof(comm), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, name);
}

/* Choose the threads called @name of process @pid.  Returns how many, or -errno. */
static int choose_named(struct ctl *c, pid_t pid, const char *name, const char *mode)
{
	DIR *dir = proc_threads(pid);
	pid_t tid;
	int nr = 0, err = 0;

	while (dir && !err && (tid = proc_next_thread(dir)) > 0) {
		if (!is_called(pid, tid, name))
			continue;
		err = ask_of(c, tid, "thread %d %s", (int)tid, mode);
		nr += !err;
		err = err == -ESRCH ? 0 : err;
	}
	if (dir)
		closedir(dir);
	return err ? err : nr;
}

static int choose_thread(struct ctl *c, const char *name, const char *mode)
{
	pid_t pids[MOST_PIDS];
	uint64_t tid;
	int nr, of_it, found = 0;

	if (!strcmp(name, "all"))
		return ask(c, "all %s", mode);
	if (!value_number(name, &tid))
		return ask(c, "thread %" PRIu64 " %s", tid, mode);
	nr = recorded_pids(c, pids);
	for (int i = 0; i < nr; i++) {
		of_it = choose_named(c, pids[i], name, mode);
		if (of_it < 0)
			return of_it;
		found += of_it;
	}
	if (found || nr < 0)
		return nr < 0 ? nr : 0;
	log_error("no recorded process has a thread '%s' now: 'ps -L -p PID' shows names and "
		  "numbers",
		  name);
	return -ESRCH;
}

/* Choose the calls of what is called @name in process @pid.  Returns how many places that is,
 * -ESRCH: it has ended, of which nothing is said, or -errno. */
static int choose_function(struct ctl *c, pid_t pid, const char *name, const char *mode)
{
	struct ctl_place places[CTL_MAX_PLACES];
	int err, nr = ctl_places_find(pid, name, places);

	if (nr < 0 && has_ended(pid))
		return -ESRCH;
	if (nr < 0)
		log_error("cannot look at process %d: %s", (int)pid, strerror(-nr));
	if (nr > CTL_MAX_PLACES) {
		log_error("process %d has %d functions '%s', and %d is the most: give addresses",
			  (int)pid, nr, name, CTL_MAX_PLACES);
		return -ENOSPC;
	}
	for (int i = 0; i < nr; i++) {
		err = ask_of(c, pid, "site %d %" PRIx64 " %" PRIx64 " %s", (int)pid,
			     places[i].start, places[i].size, mode);
		if (err)
			return err;
	}
	return nr;
}

static int choose_site(struct ctl *c, const char *name, const char *mode)
{
	bool is_address = isdigit((unsigned char)*name);
	int nr, of_it = 0, found = 0, ended = 0;
	pid_t pids[MOST_PIDS];
	uint64_t address = 0;

	if (is_address && value_address(name, &address)) {
		log_error("--site needs an address as 0x55d0c0ffee00, or the name of a function, "
			  "not '%s'",
			  name);
		return -EINVAL;
	}
	nr = recorded_pids(c, pids);
	for (int i = 0; i < nr && of_it >= 0; i++) {
		if (is_address)
			of_it = ask_of(c, pids[i], "site %d %" PRIx64 " 1 %s", (int)pids[i],
				       address, mode);
		else
			of_it = choose_function(c, pids[i], name, mode);
		found += of_it > 0;
		ended += of_it == -ESRCH;
		of_it = of_it == -ESRCH ? 0 : of_it;
	}
	if (nr < 0 || of_it < 0)
		return nr < 0 ? nr : of_it;
	if (ended == nr) {
		log_error("no process is recorded any more");
		return -ESRCH;
	}
	if (found || is_address)
		return 0;
	log_error("no recorded process has a function '%s': 'mleak report' shows their names; one "
		  "that was inlined everywhere is in its callers",
		  name);
	return -ENOENT;
}

static int choose(struct ctl *c, int key, const char *text)
{
	const char *mode;
	char *name = cut_mode(text, &mode);
	uint64_t pid = 0;
	int err = -ENOMEM;

	if (!name)
		log_error("%s", strerror(ENOMEM));
	else if (key == CTL_THREAD)
		err = choose_thread(c, name, mode);
	else if (key == CTL_SITE)
		err = choose_site(c, name, mode);
	else if (value_number(name, &pid))
		err = option_refuse(&table[2], "the number of a process, and =recorded or =counted",
				    text);
	else
		err = ask(c, "process %" PRIu64 " %s", pid, mode);
	free(name);
	return err;
}

static int change_trigger(struct ctl *c, const struct option_info *option, const char *text)
{
	static const char *const kinds[TRIGGER_NR] = {"thread", "process", "site"};
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	enum choice_trigger trigger;
	uint64_t bytes;

	if (!strcmp(colon ? colon + 1 : text, "none"))
		for (int i = 0; i < TRIGGER_NR; i++)
			if (!colon || (len == strlen(kinds[i]) && !memcmp(text, kinds[i], len)))
				return ask(c, "trigger %s none", kinds[i]);
	if (filters_read_trigger(text, &trigger, &bytes))
		return option_refuse(option,
				     "bytes from 1 on or none, as 10M for threads, process:10M, "
				     "site:none",
				     text);
	return ask(c, "trigger %s %" PRIu64, kinds[trigger], bytes);
}

static int mark(struct ctl *c, const char *text)
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
	return ask(c, "mark %s", text);
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
static int show(struct ctl *c, const char *request)
{
	int err = ask(c, "%s", request);

	if (!err)
		print_lines(c->peer.answer);
	return err;
}

static int act(struct ctl *c, const struct action *a)
{
	switch (a->option->key) {
	case CTL_TRIGGER:
		return change_trigger(c, a->option, a->text);
	case CTL_MARK:
		return mark(c, a->text);
	case CTL_SWITCH:
		return ask(c, "switch");
	case CTL_STATUS:
		return show(c, "status");
	default:
		return choose(c, a->option->key, a->text);
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
	c->pid = (pid_t)pid;
	return 0;
}

int cmd_ctl(int argc, char **argv)
{
	struct ctl c = {.peer = {.socket = -1}};
	int err = options_read(ctl_option, false, argc, argv, note_action, &c);

	if (!err && c.help)
		return print_help();
	if (!err)
		err = read_pid(&c, argc, argv);
	if (!err)
		err = control_find(&c.peer, c.pid);
	if (!err && !c.nr)
		err = show(&c, "status");
	for (size_t i = 0; i < c.nr && !err; i++)
		err = act(&c, &c.actions[i]);
	control_leave(&c.peer);
	return err ? EXIT_USAGE : print_finish(EXIT_OK);
}
