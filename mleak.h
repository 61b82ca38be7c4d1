/* mleak.h - what all commands share: messages, exit statuses, the commands themselves */
#ifndef MLEAK_H
#define MLEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define MLEAK_VERSION "0.1.0"

/* `mleak record` instead passes on the status of the command it starts, as env(1) and timeout(1)
 * do. */
enum {
	EXIT_OK = 0,
	EXIT_LEAKS = 1,		   /* of checks: something leaked; nothing else is 1 */
	EXIT_USAGE = 2,		   /* bad options, or an input that cannot be read */
	EXIT_FAILED = 2,	   /* no memory, or the output cannot be written */
	EXIT_UNKNOWN = 2,	   /* of checks: the trace does not tell */
	EXIT_REFUSED = 124,	   /* of record_into() alone */
	EXIT_RECORD_FAILED = 125,  /* mleak record itself failed */
	EXIT_NOT_EXECUTABLE = 126, /* the command was found but could not be started */
	EXIT_NOT_FOUND = 127,	   /* the command was not found */
};

/* Print @text of whatever origin, so that a terminal does nothing but show it: control characters,
 * bytes that are no UTF-8 and marks that change the direction of writing appear as \xHH and \u{H}.
 * Errors of writing are left in @out for ferror(). */
void print_harmless(FILE *out, const char *text);

/* Make sure that all output to stdout is written; say why not.  Returns the exit status @status, or
 * EXIT_FAILED. */
int print_finish(int status);

/* One line on stderr, after "mleak: " or "mleak: warning: "; the newline is added.  What the line
 * would do to a terminal is removed as by print_harmless(). */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* On stderr, a terminal, is a line that shows how far it is: the next message takes its place, or
 * log_end_line() takes it away, if that was not done yet. */
void log_over_line(void);
void log_end_line(void);

/* From now on log_info() prints nothing, and nothing shows how far it is. */
void log_quiet(void);
bool log_is_quiet(void);

/* From now on log_error() and log_warn() print nothing: what is done was not asked for. */
void log_no_errors(void);

/* Calls of log_warn() by this process so far. */
unsigned long log_warnings(void);

/* The commands: argv[0] is the command's name; they return the exit status. */
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_unwind(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_reach(int argc, char **argv);

/*
 * As cmd_record(), but the trace goes to @fd, a pipe; a byte to @told when the recording has begun,
 * before the command does; and nothing is said of how it goes or went but warnings and errors.  For
 * a process of its own, of which the caller is the parent.  EXIT_REFUSED: the kernel refused eBPF
 * when the trace had begun; the command did not run, and can be recorded with --backend=preload, as
 * was said.
 */
int record_into(int argc, char **argv, int fd, int told);

/* End as a process ended of which waitpid(2) says @status: by the same signal, without a core; else
 * returns its exit status. */
int end_as(int status);

/* Say on stderr in one line what grows in the trace at @path, which is complete; nothing if nothing
 * does or the trace is a large one. */
void tell_growth(const char *path);

/* Keep beside the trace at @path, which is complete, what its first report would, as $MLEAK_CACHE
 * says.  By default only where a report is waited for, and this is not for long.  What fails is no
 * error: the report does it.  It is the last thing that the process does: see log_no_errors(); and
 * SIGTERM ends it. */
void keep_results(const char *path);

/* Print the linker's options for a program that is to be recorded though it is statically linked.
 * Returns the exit status. */
int print_wrap_flags(void);

/* An option of a command, for the manual page and for completion.  All strings are static. */
struct option_info {
	int key; /* the letter of the short form; or a number from 256 on, of this command's */
	const char *name; /* of the long form, without dashes */
	const char *arg; /* what it takes, as FILE; in [brackets]: may be left out; NULL: nothing */
	const char *values; /* all that arg can be, with spaces between; NULL: not so few */
	const char *help;   /* spaces alone between its words */
	const char *group;  /* heading of the options from this one on; NULL: as the one before */
};

/* The letter of its short form; 0: there is none. */
static inline int option_letter(const struct option_info *o)
{
	return o->key < 256 ? o->key : 0;
}

/* Fill *@option with option @i, from 0, of a command.  Returns false beyond the last. */
typedef bool option_rows(size_t i, struct option_info *option);

option_rows record_option, report_option, diff_option, unwind_option, why_option;
option_rows info_option, script_option, top_option, ctl_option, reach_option;

#endif
