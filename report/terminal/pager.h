/* pager.h - stdout, to the end */
#ifndef REPORT_PAGER_H
#define REPORT_PAGER_H

/* From now on show what goes to stdout in a pager, if stdout is a terminal: in MLEAK_PAGER, else
 * PAGER, else less.  One that is empty or "cat" means none.  Without memory or processes there is
 * none, either; in place of one that cannot be run there is a warning. */
void pager_start(void);

/* Make sure that all of the report went out, or say why not.  A process that closed a pipe has read
 * enough.  Returns EXIT_OK or EXIT_FAILED. */
int pager_finish(void);

#endif
