/* choices.h - what is recorded and what is only counted, changed in the programs' maps */
#ifndef RECORD_CHOICES_H
#define RECORD_CHOICES_H

#include "record/filter/choice.h"

struct event_choices;
struct filter_opts;
struct mleak_bpf;

/* What @f asks for at first, in @skel, which is open and not yet loaded. */
void choices_begin(const struct filter_opts *f, struct mleak_bpf *skel);

/* Have @skel, which is loaded, do as @c says from now on.  Returns 0, or -errno after the sentence
 * at @why, CHOICE_WHY bytes, was set. */
int choices_apply(struct mleak_bpf *skel, const struct choice *c, char *why);

/* Record all threads from now on that are not chosen to be counted. */
void choices_record_all(struct mleak_bpf *skel);

/* Put the site of @c behind the others of @all; where it stood before, it goes.  Returns 0, or
 * -ENOSPC: then it is in none. */
int choices_append_site(struct event_choices *all, const struct choice *c);

/* Put the passage of @c among those of @all.  Returns 0 or -ENOSPC. */
int choices_append_passage(struct event_choices *all, const struct choice *c);

/* Why @c cannot be applied, which failed with @err, into the CHOICE_WHY bytes at @why. */
void choices_explain(char *why, const struct choice *c, int err);

/* The same of a trigger of whose kind no sums are kept, and of any @c where all is recorded. */
void choices_explain_trigger(char *why, const struct choice *c);
void choices_explain_none(char *why);

/* Count and list in @counts the sites in @choices, which are of the process @pid. */
void choices_list(const struct event_choices *choices, pid_t pid, struct choice_counts *counts);

/* Count what is chosen now. */
void choices_count(const struct mleak_bpf *skel, struct choice_counts *counts);

#endif
