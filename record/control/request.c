/* request.c - see request.h */
#include "record/control/request.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The words of a line that are still to be read. */
struct words {
	char *rest; /* NULL: there are no more */
};

/* The next word; "" behind the last. */
static const char *next_word(struct words *w)
{
	char *word = w->rest;

	if (!word)
		return "";
	w->rest = strchr(word, ' ');
	if (w->rest)
		*w->rest++ = '\0';
	return word;
}

/* A number of @base from 1 to @most; strtoull() takes a sign and white space, too. */
static int read_number(struct words *w, int base, uint64_t most, uint64_t *value)
{
	const char *word = next_word(w);
	char *end;

	if (!isxdigit((unsigned char)*word))
		return -EINVAL;
	errno = 0;
	*value = strtoull(word, &end, base);
	return errno || *end || !*value || *value > most ? -EINVAL : 0;
}

static int read_id(struct words *w, pid_t *id)
{
	uint64_t value = 0;
	int err = read_number(w, 10, INT_MAX, &value);

	*id = (pid_t)value;
	return err;
}

static int read_mode(struct words *w, bool *recorded)
{
	const char *word = next_word(w);

	*recorded = !strcmp(word, "recorded");
	return *recorded || !strcmp(word, "counted") ? 0 : -EINVAL;
}

static int read_all(struct words *w, struct choice *c)
{
	c->of = CHOICE_ALL;
	return read_mode(w, &c->recorded);
}

static int read_thread(struct words *w, struct choice *c)
{
	c->of = CHOICE_THREAD;
	return read_id(w, &c->tid) || read_mode(w, &c->recorded) ? -EINVAL : 0;
}

static int read_process(struct words *w, struct choice *c)
{
	c->of = CHOICE_PROCESS;
	return read_id(w, &c->pid) || read_mode(w, &c->recorded) ? -EINVAL : 0;
}

static int read_range(struct words *w, struct choice *c)
{
	if (read_id(w, &c->pid) || read_number(w, 16, UINT64_MAX, &c->start) ||
	    read_number(w, 16, UINT64_MAX, &c->size))
		return -EINVAL;
	return c->start + c->size < c->start ? -EINVAL : 0;
}

/* The rest of the line, of less than @size bytes. */
static int read_text(struct words *w, char *text, size_t size)
{
	size_t len = w->rest ? strlen(w->rest) : 0;

	if (len >= size)
		return -EINVAL;
	memcpy(text, w->rest ? w->rest : "", len + 1);
	w->rest = NULL;
	return 0;
}

static int read_site(struct words *w, struct choice *c)
{
	c->of = CHOICE_SITE;
	if (read_range(w, c) || read_mode(w, &c->recorded))
		return -EINVAL;
	return read_text(w, c->name, sizeof(c->name));
}

static int read_passage(struct words *w, struct choice *c)
{
	c->of = CHOICE_PASSAGE;
	return read_range(w, c) || read_number(w, 16, CHOICE_MOST_UP, &c->up) ? -EINVAL : 0;
}

static int read_trigger(struct words *w, struct choice *c)
{
	static const char *const kinds[TRIGGER_NR] = {"thread", "process", "site"};
	const char *kind = next_word(w);

	c->of = CHOICE_TRIGGER;
	while (c->trigger < TRIGGER_NR && strcmp(kind, kinds[c->trigger]) != 0)
		c->trigger++;
	c->bytes = TRIGGER_NEVER;
	if (c->trigger == TRIGGER_NR)
		return -EINVAL;
	if (w->rest && !strcmp(w->rest, "none")) {
		next_word(w);
		return 0;
	}
	return read_number(w, 10, TRIGGER_NEVER, &c->bytes);
}

static int read_request(struct control_request *r, struct words *w)
{
	static const struct {
		const char *name;
		int (*read)(struct words *w, struct choice *c);
	} choices[] = {{"all", read_all},   {"thread", read_thread},   {"process", read_process},
		       {"site", read_site}, {"passage", read_passage}, {"trigger", read_trigger}};
	static const struct {
		const char *name;
		enum control_verb verb;
	} plain[] = {{"status", CONTROL_STATUS},
		     {"pids", CONTROL_PIDS},
		     {"switch", CONTROL_SWITCH},
		     {"reach", CONTROL_REACH}};
	const char *name = next_word(w);

	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (!strcmp(name, choices[i].name)) {
			r->verb = CONTROL_CHOOSE;
			return choices[i].read(w, &r->choice);
		}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(name, plain[i].name)) {
			r->verb = plain[i].verb;
			return 0;
		}
	if (!strcmp(name, "records")) {
		r->verb = CONTROL_RECORDS;
		return read_id(w, &r->choice.pid);
	}
	r->verb = CONTROL_MARK;
	return strcmp(name, "mark") != 0 ? -EINVAL : read_text(w, r->text, sizeof(r->text));
}

int control_parse(struct control_request *r, const char *line, size_t len)
{
	char copy[CONTROL_MAX_MARK + 128];
	struct words w = {copy};

	*r = (struct control_request){0};
	if (len >= sizeof(copy))
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)line[i]))
			return -EINVAL;
	memcpy(copy, line, len);
	copy[len] = '\0';
	return read_request(r, &w) || w.rest ? -EINVAL : 0;
}
