/* mleak.c - the front door: picks the command and says what went wrong */
#include "mleak.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <lzma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <zlib.h>
#include <zstd.h>

#include "cmdline/options.h"
#include "cmdline/own_stack.h"
#include "report/base/text.h"

/* What follows a command's options. */
enum words {
	WORDS_FILES,
	WORDS_COMMAND, /* that is started */
	WORDS_EITHER,  /* a file, or behind "--" a command */
	WORDS_PIDS,    /* numbers of processes */
};

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
	option_rows *option;
	enum words words;
} commands[] = {
	{"record", cmd_record, "watch a running program, or start one, and write a trace",
	 record_option, WORDS_COMMAND},
	{"reach", cmd_reach, "show which blocks a running process has lost, by its memory alone",
	 reach_option, WORDS_PIDS},
	{"top", cmd_top, "show while a program runs which stacks hold memory", top_option,
	 WORDS_EITHER},
	{"ctl", cmd_ctl, "ask a recording that runs, and change what it records", ctl_option,
	 WORDS_PIDS},
	{"report", cmd_report, "show the leaks in a trace, and their call paths", report_option,
	 WORDS_FILES},
	{"info", cmd_info, "show the program, modules, threads and losses of a trace", info_option,
	 WORDS_FILES},
	{"script", cmd_script, "print the events of a trace, one per line", script_option,
	 WORDS_FILES},
	{"diff", cmd_report, "compare what is outstanding in two traces", diff_option, WORDS_FILES},
	{"why", cmd_why, "show who holds memory: variables, stacks, and the way to a block",
	 why_option, WORDS_FILES},
	{"unwind", cmd_unwind, "unwind a trace once, so that its reports are faster", unwind_option,
	 WORDS_FILES},
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

void print_harmless(FILE *out, const char *text)
{
	text_print(out, text);
}

int print_finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	log_error("cannot write to the standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

static bool has_line;

void log_over_line(void)
{
	__atomic_store_n(&has_line, true, __ATOMIC_RELAXED);
}

void log_end_line(void)
{
	if (__atomic_exchange_n(&has_line, false, __ATOMIC_RELAXED))
		fputs("\r\033[K", stderr);
}

/* Names of programs and files are in it, with whatever bytes they have. */
static void log_line(const char *prefix, const char *fmt, va_list args)
{
	char *text;

	log_end_line();
	fputs(prefix, stderr);
	if (vasprintf(&text, fmt, args) >= 0) {
		print_harmless(stderr, text);
		free(text);
	} else {
		fputs("out of memory", stderr);
	}
	fputc('\n', stderr);
}

static bool without_errors;

void log_no_errors(void)
{
	without_errors = true;
}

void log_error(const char *fmt, ...)
{
	va_list args;

	if (without_errors)
		return;
	va_start(args, fmt);
	log_line("mleak: ", fmt, args);
	va_end(args);
}

static unsigned long nr_warnings;

unsigned long log_warnings(void)
{
	return __atomic_load_n(&nr_warnings, __ATOMIC_RELAXED);
}

void log_warn(const char *fmt, ...)
{
	va_list args;

	__atomic_add_fetch(&nr_warnings, 1, __ATOMIC_RELAXED);
	if (without_errors)
		return;
	va_start(args, fmt);
	log_line("mleak: warning: ", fmt, args);
	va_end(args);
}

static bool is_quiet;

void log_quiet(void)
{
	is_quiet = true;
}

bool log_is_quiet(void)
{
	return is_quiet;
}

void log_info(const char *fmt, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, fmt);
	log_line("mleak: ", fmt, args);
	va_end(args);
}

static void print_help(FILE *out)
{
	fputs("usage: mleak COMMAND [OPTIONS]\n\n"
	      "Finds memory leaks in running Linux programs, with true stacks.\n\n",
	      out);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  mleak %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\n'mleak COMMAND --help' lists a command's options, 'mleak --version' the libraries "
	      "in use,\n'mleak --wrap-flags' the flags that link a static program for --backend "
	      "preload.\n",
	      out);
}

/* The libraries are those in use, which decide what can be read: elfutils which debug information.
 */
static void print_version(void)
{
	printf("mleak " MLEAK_VERSION "\n"
	       "with libbpf %u.%u, elfutils %s, zstd %s, zlib %s, liblzma %s\n",
	       libbpf_major_version(), libbpf_minor_version(), dwfl_version(NULL),
	       ZSTD_versionString(), zlibVersion(), lzma_version_string());
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

/* Print @text without what ends a field or a line. */
static void print_field(const char *text)
{
	for (; *text; text++)
		putchar(iscntrl((unsigned char)*text) ? ' ' : *text);
}

/* For the manual page, one option a line: its letter, name, argument, help and the heading before
 * it, with tabs between. */
static int list_options(const struct command *command)
{
	struct option_info option;

	for (size_t i = 0; command && command->option(i, &option); i++) {
		printf("%.1s\t%s\t%s\t", (char[]){(char)option_letter(&option), '\0'}, option.name,
		       option.arg ? option.arg : "");
		print_field(option.help);
		printf("\t%s\n", option.group ? option.group : "");
	}
	return command ? EXIT_OK : EXIT_USAGE;
}

/* Completion: the shells' scripts in doc/completion pass the words up to the cursor.  What is
 * printed is lines of a candidate, a tab and what it is, or one line that begins with ':' and tells
 * what else to offer: `:files`, `:dirs`, or `:command N`, a command whose name is word N after the
 * command of ours. */

static void offer(const char *partial, const char *before, const char *candidate, const char *about)
{
	size_t skip = strlen(before);

	if (strncmp(partial, before, skip) != 0 ||
	    strncmp(partial + skip, candidate, strlen(partial + skip)) != 0)
		return;
	printf("%s%s\t", before, candidate);
	print_field(about);
	putchar('\n');
}

/* Does @option need a value in the next word? */
static bool wants_word(const struct option_info *option)
{
	return option->arg && *option->arg != '[';
}

/* The option of @word, `--name` up to any '=', or the last of some letters as in `-in`. */
static bool find_option(const struct command *command, const char *word, struct option_info *option)
{
	bool is_long = !strncmp(word, "--", 2);
	size_t len = is_long ? strcspn(word + 2, "=") : 0;

	for (size_t i = 0; command->option(i, option); i++) {
		if (is_long && strlen(option->name) == len && !memcmp(option->name, word + 2, len))
			return true;
		if (!is_long && option_letter(option) == word[strlen(word) - 1])
			return true;
	}
	return false;
}

/* By their numbers, or by their names if these are begun. */
static void offer_processes(const char *partial, const char *before)
{
	bool by_name = strlen(partial) > strlen(before) &&
		       !isdigit((unsigned char)partial[strlen(before)]);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)) != NULL) {
		char path[300], name[32] = "";
		FILE *comm;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		comm = fopen(path, "re");
		if (!comm)
			continue;
		if (fgets(name, sizeof(name), comm))
			name[strcspn(name, "\n")] = '\0';
		fclose(comm);
		offer(partial, before, by_name ? name : entry->d_name,
		      by_name ? entry->d_name : name);
	}
	if (proc)
		closedir(proc);
}

/* What @option takes; @before precedes it in the same word. */
static void offer_values(const struct command *command, const struct option_info *option,
			 const char *partial, const char *before)
{
	char value[32];

	if (strstr(option->arg, "FILE"))
		puts(":files");
	else if (strstr(option->arg, "DIR"))
		puts(":dirs");
	else if (strstr(option->arg, "PID") && command->words != WORDS_FILES)
		/* of a report they are those of a trace, which have other numbers than these */
		offer_processes(partial, before);
	for (const char *at = option->values; at && *at; at += strspn(at, " ")) {
		int len = (int)strcspn(at, " ");

		snprintf(value, sizeof(value), "%.*s", len, at);
		offer(partial, before, value, "");
		at += len;
	}
}

/* The word is an option, or begins to be one. */
static void offer_options(const struct command *command, const char *partial)
{
	const char *equals = strchr(partial, '=');
	struct option_info option;
	char word[64];

	if (equals) {
		snprintf(word, sizeof(word), "%.*s", (int)(equals + 1 - partial), partial);
		if (find_option(command, partial, &option) && option.arg)
			offer_values(command, &option, partial, word);
		return;
	}
	for (size_t i = 0; command->option(i, &option); i++) {
		snprintf(word, sizeof(word), "--%s", option.name);
		offer(partial, "", word, option.help);
	}
}

/* Offer what can be in the last of @nr words, of which the first is the command's name. */
static void complete_words(const struct command *command, char **words, int nr)
{
	bool started = command->words == WORDS_COMMAND;
	struct option_info option;
	int at = 1;

	for (; at < nr - 1 && strcmp(words[at], "--") != 0; at++) {
		/* bash makes three words of --name=value */
		bool split = !strcmp(words[at + 1], "=");
		int value = at + 1 + (split && at + 1 < nr - 1);

		if (words[at][0] != '-' || !words[at][1]) {
			if (command->words == WORDS_COMMAND)
				break;
		} else if (!strchr(words[at], '=') && find_option(command, words[at], &option) &&
			   (split ? option.arg != NULL : wants_word(&option))) {
			if (value == nr - 1) {
				offer_values(command, &option,
					     split && value == at + 1 ? "" : words[value], "");
				return;
			}
			at = value;
		}
	}
	if (command->words == WORDS_PIDS && words[nr - 1][0] != '-') {
		offer_processes(words[nr - 1], "");
		return;
	}
	if (at < nr - 1 && !strcmp(words[at], "--")) {
		at++;
		started = command->words != WORDS_FILES;
	} else if (at >= nr - 1 && words[nr - 1][0] == '-') {
		offer_options(command, words[nr - 1]);
		return;
	}
	if (started)
		printf(":command %d\n", at);
	else
		puts(":files");
}

static int complete(char **words, int nr)
{
	const struct command *command = nr > 1 ? find_command(words[0]) : NULL;

	if (command)
		complete_words(command, words, nr);
	for (size_t i = 0; nr == 1 && i < NR_COMMANDS; i++)
		offer(words[0], "", commands[i].name, commands[i].help);
	if (nr == 1) {
		offer(words[0], "", "--help", "list the commands");
		offer(words[0], "", "--version", "print the version");
		offer(words[0], "", "--wrap-flags",
		      "print the flags to link a static program with");
	}
	return EXIT_OK;
}

static int refuse_command(const char *word)
{
	char names[256] = "";
	int nearest;

	for (size_t i = 0; i < NR_COMMANDS; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ",
			 commands[i].name);
	nearest = nearest_name(names, word);
	if (nearest >= 0)
		log_error("'%s' is no command, did you mean %s? 'mleak --help' lists them", word,
			  commands[nearest].name);
	else
		log_error("'%s' is no command; 'mleak --help' lists them", word);
	return EXIT_USAGE;
}

int end_as(int status)
{
	struct rlimit no_core = {0};
	sigset_t set;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core); /* the other process's core is the one of interest */
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	/* `mleak help report` is `mleak report --help` */
	if (!strcmp(argv[1], "help") && argc == 3) {
		argv[1] = argv[2];
		argv[2] = (char *)"--help";
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return print_finish(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		print_version();
		return print_finish(EXIT_OK);
	}
	if (!strcmp(argv[1], "--wrap-flags"))
		return print_finish(print_wrap_flags());
	/* these two are for the build and for shells, and not in the help */
	if (!strcmp(argv[1], "--list-options") && argc == 3)
		return list_options(find_command(argv[2]));
	if (!strcmp(argv[1], "--complete"))
		return complete(argv + 2, argc - 2);
	command = find_command(argv[1]);
	if (command)
		return run_on_own_stack(command->run, argc - 1, argv + 1);
	return refuse_command(argv[1]);
}
