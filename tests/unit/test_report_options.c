/* test_report_options.c - what is said of a wrong command line, and of a pipe that is closed */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <sys/wait.h>

#include <cmocka.h>

#include "mleak.h"
#include "report/options/options.h"

#define MAX_ARGS 8

/* Split @line at spaces into @argv, which ends with a NULL.  Returns how many there are. */
static int split(char *line, char **argv)
{
	int argc = 0;

	for (char *word; (word = strsep(&line, " "));) {
		assert_true(argc < MAX_ARGS - 1);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	return argc;
}

/* Parse @words after "report", with stderr in @said. */
static int parse(struct report_opts *opts, const char *words, char *said, size_t room)
{
	FILE *file = tmpfile();
	int err, old = dup(STDERR_FILENO);
	static char line[256]; /* the options point into it */
	char *argv[MAX_ARGS];
	size_t len;

	snprintf(line, sizeof(line), "report %s", words);
	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	err = report_opts_parse(opts, split(line, argv), argv);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(file);
	len = fread(said, 1, room - 1, file);
	said[len] = '\0';
	fclose(file);
	return err;
}

static void check_refused(const char *words, const char *said)
{
	struct report_opts opts;
	char text[512], expected[512];

	assert_int_equal(parse(&opts, words, text, sizeof(text)), -EINVAL);
	snprintf(expected, sizeof(expected), "mleak: %s; 'mleak report --help' lists the options\n",
		 said);
	assert_string_equal(text, expected);
	report_opts_release(&opts);
}

static void a_wrong_option_is_named(void **state)
{
	(void)state;
	check_refused("-in m1.mlk", "unknown option '-i'");
	check_refused("-x", "unknown option '-x'");
	check_refused("one.mlk -x --folded", "unknown option '-x'");
	check_refused("--nonsense", "unknown option '--nonsense'");
	check_refused("--fo", "'--fo' may be --format or --folded");
	check_refused("--fo=tree", "'--fo=tree' may be --format or --folded");
	check_refused("--folded=yes", "option '--folded' wants no value");
	check_refused("--help=me", "option '--help' wants no value");
	check_refused("-n", "option '--top' wants a value");
	check_refused("--inverted --top", "option '--top' wants a value");
}

static void options_and_the_trace_come_in_any_order(void **state)
{
	struct report_opts opts;
	char text[512];

	(void)state;
	assert_int_equal(parse(&opts, "-n3 one.mlk --inv", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(opts.view.top, 3);
	assert_true(opts.view.inverted);
	assert_int_equal(opts.format, FORMAT_TREE);
	assert_string_equal(opts.path, "one.mlk");
	report_opts_release(&opts);
}

static void a_closed_pipe_is_a_quiet_end(void **state)
{
	char text[512];
	int out[2], err[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(err), 0);
	child = fork();
	if (!child) {
		char report[] = "report", help[] = "--help", *argv[] = {report, help, NULL};

		signal(SIGPIPE, SIG_DFL);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		_exit(cmd_report(2, argv));
	}
	close(out[0]);
	close(out[1]);
	close(err[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(read(err[0], text, sizeof(text)), 0);
	close(err[0]);
}

/* option_apply() ends the program if one is in no table of its own. */
static void each_option_of_the_help_can_be_taken(void **state)
{
	static const char *const args[] = {"1",		  "1,2",   "json", "age",  "never",
					   "blocks",	  "ascii", "/",	   "full", "4M",
					   "/etc/passwd", "leak",  "held"};
	struct option_info option;

	(void)state;
	for (size_t i = 0; report_option(i, &option); i++) {
		size_t taken = 0;

		for (size_t a = 0; a < sizeof(args) / sizeof(*args); a++) {
			struct report_opts opts;
			char words[64], said[256];

			snprintf(words, sizeof(words), "--%s%s%s", option.name,
				 option.arg ? "=" : "", option.arg ? args[a] : "");
			taken += !parse(&opts, words, said, sizeof(said));
			report_opts_release(&opts);
		}
		/* these two go with others */
		if (strcmp(option.name, "around") != 0 && strcmp(option.name, "temporary") != 0)
			assert_true(taken > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_option_is_named),
		cmocka_unit_test(options_and_the_trace_come_in_any_order),
		cmocka_unit_test(a_closed_pipe_is_a_quiet_end),
		cmocka_unit_test(each_option_of_the_help_can_be_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
