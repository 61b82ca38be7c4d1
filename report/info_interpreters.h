/* info_interpreters.h - what `mleak info` tells of interpreters */
#ifndef REPORT_INFO_INTERPRETERS_H
#define REPORT_INFO_INTERPRETERS_H

#include "report/trace/interpreted.h"

/* Print a line for each interpreter in @in. */
void info_interpreters_put(const struct interpreted *in);

#endif
