/* page_head.h - what the head of a page tells: the recording, its sums, its losses */
#ifndef REPORT_PAGE_HEAD_H
#define REPORT_PAGE_HEAD_H

#include "report/context/report_data.h"

/* Write it as members of the object that is open.  Returns 0 or -ENOMEM. */
int page_head_put(struct json *json, const struct report_data *export);

/* Write as member "unwound" how many of @allocations have @complete stacks. */
void page_head_unwound(struct json *json, uint64_t allocations, uint64_t complete);

/* Write @amount as member @key, as json_number() writes a number. */
void page_head_amount(struct json *json, const char *key, struct live_amount amount);

#endif
