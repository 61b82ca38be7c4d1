/* embedded_suppressions.h - the suppressions that the recorded programs have in themselves
 *
 * A recorder puts what __lsan_default_suppressions() of a module returns into a section of its
 * image.
 */
#ifndef REPORT_EMBEDDED_SUPPRESSIONS_H
#define REPORT_EMBEDDED_SUPPRESSIONS_H

#include "report/filter/suppressions.h"
#include "report/replay/replay.h"

/*
 * Add those of all modules of @leaks to *@suppressions, which is made when it is NULL and there are
 * any.  Warn of a module whose suppressions could not be read.  Returns 0 or -ENOMEM.
 */
int embedded_suppressions_add(struct suppressions **suppressions, const struct replay *leaks);

#endif
