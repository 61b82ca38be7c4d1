/* there.h - what the calls of a target's thread have in common: a file, and what can go wrong */
#ifndef RECORD_INJECT_THERE_H
#define RECORD_INJECT_THERE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "record/inject/inject.h"
#include "record/inject/remote/remote.h"

/* A file without a name, in both processes. */
struct inject_file {
	int fd;	       /* ours; -1: there is none */
	int64_t there; /* the target's descriptor; negative: there is none */
};

/* Put the sentence's part @text into @why, INJECT_WHY bytes. */
static inline void give_reason(char *why, const char *text)
{
	snprintf(why, INJECT_WHY, "%s", text);
}

/* The same of a failure @err of what was to be done. */
static inline void give_failure(char *why, const char *what, int err)
{
	snprintf(why, INJECT_WHY, "%s: %s", what, strerror(-err));
}

/* As remote_call(), whose result is to be no failure.  Returns that, or -errno. */
int64_t there_call(struct remote *r, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		   int64_t fd, uint64_t offset);

/* Make a file there, called @name, and open it here.  Returns 0 or -errno. */
int there_make_file(struct remote *r, const char *name, struct inject_file *f);

/* Why nothing of what is needed can be had: @err of @what was to be done. */
void there_explain(char *why, const char *what, int err);

#endif
