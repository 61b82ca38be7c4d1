/* mleak.h - what all commands share: messages, exit statuses, the commands themselves */
#ifndef MLEAK_H
#define MLEAK_H

#define MLEAK_VERSION "0.1.0"

/* `mleak record` instead passes on the status of the command it starts, as env(1) and timeout(1)
 * do. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,		   /* bad options, or an input that cannot be read */
	EXIT_RECORD_FAILED = 125,  /* mleak record itself failed */
	EXIT_NOT_EXECUTABLE = 126, /* the command was found but could not be started */
	EXIT_NOT_FOUND = 127,	   /* the command was not found */
};

/* One line on stderr, after "mleak: " or "mleak: warning: "; the newline is added. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The commands: argv[0] is the command's name; they return the exit status. */
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_script(int argc, char **argv);

#endif
