/* output.h - stdout, to the end */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

/* Make sure that all of the report went out, or say why not.  Whoever closed a pipe has read
 * enough. Returns EXIT_OK or EXIT_FAILED. */
int output_finish(void);

#endif
