/* options.h - the command lines of all commands: read in one way, refused in the same sentences
 *
 * A command has rows of struct option_info (mleak.h), of which the help, the manual page and the
 * completion are made too.
 */
#ifndef CMDLINE_OPTIONS_H
#define CMDLINE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mleak.h"

#define OPTIONS_MAX 64 /* of one command */

/* Apply the option @o, given with the value @text (NULL: none), to @ctx.  @text is borrowed from
 * argv.  Returns 0, or a negative errno after one sentence was logged. */
typedef int option_apply_fn(void *ctx, const struct option_info *o, const char *text);

/*
 * Have each option of the command line applied in its order.  argv[0] is the command's name.  With
 * @leads the options end at the first word that is none; else words may stand between them.
 * Returns 0, with the index of the first word behind the options in optind; or a negative errno,
 * after one sentence was logged.
 */
int options_read(option_rows *rows, bool leads, int argc, char **argv, option_apply_fn *apply,
		 void *ctx);

/* Log that @o wants @wanted, as in "a number from 1", and not @text.  A row without a key is of a
 * word that is no option.  Returns -EINVAL. */
int option_refuse(const struct option_info *o, const char *wanted, const char *text);

/* Each reads @text, the value of @o, and returns 0, or a negative errno after one sentence was
 * logged that has @wanted (NULL: the usual one). */
int option_number(const struct option_info *o, const char *text, uint64_t least, uint64_t most,
		  const char *wanted, uint64_t *value);
int option_bytes(const struct option_info *o, const char *text, uint64_t least, uint64_t most,
		 const char *wanted, uint64_t *value);
int option_time(const struct option_info *o, const char *text, uint64_t least_ns, uint64_t *ns);

/* The index of @text among o->values, or -EINVAL after one sentence was logged. */
int option_word(const struct option_info *o, const char *text);

/* The one of @names, separated by spaces, that @word may have meant, as an index.  -1: none is
 * near. */
int nearest_name(const char *names, const char *word);

/* Print a command's options on stdout for --help, in their groups, in lines of 96 columns. */
void print_options(option_rows *rows);

#endif
