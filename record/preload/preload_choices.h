/* preload_choices.h - what is recorded and what is only counted, changed in the memory shared with
 * a preloaded library */
#ifndef RECORD_PRELOAD_CHOICES_H
#define RECORD_PRELOAD_CHOICES_H

#include "record/filter/choice.h"
#include "record/preload/backend.h"

/* Have the library do as @c says from now on.  Returns 0, or -errno after the sentence at @why,
 * CHOICE_WHY bytes, was set. */
int preload_choose(struct preload *p, const struct choice *c, char *why);

/* Record all from now on that is not chosen to be counted. */
void preload_record_all(struct preload *p);

/* Count what is chosen now. */
void preload_count_choices(struct preload *p, struct choice_counts *counts);

#endif
