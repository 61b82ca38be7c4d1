/* verdict_answer.h - which of the outstanding blocks are lost, in the head of a report */
#ifndef REPORT_VERDICT_ANSWER_H
#define REPORT_VERDICT_ANSWER_H

#include <stdio.h>

#include "report/context/report_data.h"

/* Say it, with the command that shows those; nothing where there is no verdict. */
void print_verdict_answer(FILE *out, const struct report_data *export);

#endif
