/* dump_code.h - what interprets and is interpreted, as --dump prints it */
#ifndef REPORT_DUMP_CODE_H
#define REPORT_DUMP_CODE_H

#include <stdio.h>

#include "format/reader.h"

/* A function, or an interpreter. */
void dump_code(FILE *out, const struct mlk_record *rec);

/* Frames of an ALLOC, without the end of the line; nothing if there are none. */
void dump_frames(FILE *out, const struct mlk_event *e);

#endif
