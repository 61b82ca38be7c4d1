/* page_times.h - what was outstanding over time, of all stacks and of each */
#ifndef REPORT_PAGE_TIMES_H
#define REPORT_PAGE_TIMES_H

#include "report/page/page_rows.h"

/*
 * Write the members "until" (the ends of the slices, in microseconds), "total" and "times" into the
 * object that is open; nothing if @rows's export has no times.  The total is bytes and blocks of
 * all stacks, of each slice what changed.  Of each stack of the page: every how many slices it is
 * told, 0: it is not; then how many entries, and of each the slices since the one before, and by
 * how much bytes and blocks changed.  The heaviest stacks are told in full, as far as there is
 * room.  Member "rss" is there if the trace tells resident memory: of each slice its bytes at the
 * end of the slice plus one, 0 where they are not known.  "marks" are moments that were marked, if
 * there are any: "at" in microseconds, "kind" and "text"; "marks_left" is how many more there are.
 * Returns 0 or -ENOMEM.
 */
int page_times_put(const struct page_rows *rows, struct json *json);

#endif
