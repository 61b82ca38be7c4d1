/* mleak.c - the front door: picks the command and says what went wrong */
#include "mleak.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"record", cmd_record, "watch a running program, or start one, and write a trace"},
	{"report", cmd_report, "show from a trace what is leaked, and by which call paths"},
	{"info", cmd_info,
	 "show what a trace is: the program, its modules and threads, what was lost"},
	{"script", cmd_script, "print the events of a trace, one a line"},
	{"diff", cmd_report, "show what is outstanding in one trace and not in another"},
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void log_line(const char *prefix, const char *fmt, va_list args)
{
	fputs(prefix, stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

void log_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line("mleak: ", fmt, args);
	va_end(args);
}

void log_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line("mleak: warning: ", fmt, args);
	va_end(args);
}

void log_info(const char *fmt, ...)
{
	va_list args;

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
	fputs("\n'mleak COMMAND --help' lists a command's options.\n", out);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("mleak " MLEAK_VERSION);
		return EXIT_OK;
	}
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	log_error("'%s' is no command; 'mleak --help' lists them", argv[1]);
	return EXIT_USAGE;
}
