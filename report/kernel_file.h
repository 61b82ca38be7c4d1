/* kernel_file.h - where a report has the lines and inlined functions of the kernel from */
#ifndef REPORT_KERNEL_FILE_H
#define REPORT_KERNEL_FILE_H

#include "report/report_run.h"

/* After the trace was read, and before anything is named: have the kernel's functions looked up in
 * the file of --vmlinux, or where distributions install that of the recorded release.  Returns
 * EXIT_OK, EXIT_USAGE if the file is not that of the recorded kernel, or EXIT_FAILED; then it has
 * been said why. */
int kernel_file_use(const struct report_run *job);

#endif
