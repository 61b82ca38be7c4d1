/* info_memory.h - what `mleak info` tells of the samples of memory in a trace */
#ifndef REPORT_INFO_MEMORY_H
#define REPORT_INFO_MEMORY_H

#include "report/trace/memory_samples.h"

/* Print a line for each process, and one for the machine. */
void info_memory_put(const struct memory_samples *memory);

#endif
