/* reader_wait.h - what reads the trace from a pipe, and may not do so */
#ifndef RECORD_READER_WAIT_H
#define RECORD_READER_WAIT_H

#include <stdbool.h>

/* For waiting_for(). */
#define READER_WAITED "the program that reads the trace"

/* Does a signal wait, as it is blocked, that ends a recording? */
bool reader_told_to_end(void);

/* Wait until something can be written to @fd without waiting, or will fail; after a second that is
 * said.  Returns 0, or -ECANCELED: reader_told_to_end(). */
int reader_wait(int fd);

#endif
