/* session_control.c - what changes while recording because somebody asks for it */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/base/clock.h"
#include "record/session/session.h"

#define NR_SITES (sizeof(((struct session *)0)->sites) / sizeof(struct choice))

/* What the site @c is called, into the CHOICE_NAME bytes at @name. */
static void name_site(const struct choice *c, char *name)
{
	if (c->name[0])
		memcpy(name, c->name, sizeof(c->name));
	else if (c->size == 1)
		snprintf(name, CHOICE_NAME, "0x%" PRIx64, c->start);
	else
		snprintf(name, CHOICE_NAME, "0x%" PRIx64 "+%" PRIu64, c->start, c->size);
}

void session_site_name(const struct session *s, const struct choice_listed *site, char *name)
{
	struct choice as = {.start = site->start, .size = site->size};

	/* of one range the last name */
	for (size_t i = 0; i < s->nr_sites && i < NR_SITES; i++) {
		const struct choice *c = &s->sites[(s->nr_sites - 1 - i) % NR_SITES];

		if (c->pid == site->pid && c->start == site->start && c->size == site->size) {
			as = *c;
			break;
		}
	}
	name_site(&as, name);
}

/* What @c asks for, as the options of `mleak ctl` say it, in the @size bytes at @text. */
static void describe_choice(const struct choice *c, char *text, size_t size)
{
	static const char *const kinds[TRIGGER_NR] = {"thread", "process", "site"};
	const char *mode = c->recorded ? "recorded" : "counted";
	char name[CHOICE_NAME];

	switch (c->of) {
	case CHOICE_ALL:
		snprintf(text, size, "thread all=%s", mode);
		break;
	case CHOICE_THREAD:
		snprintf(text, size, "thread %d=%s", (int)c->tid, mode);
		break;
	case CHOICE_PROCESS:
		snprintf(text, size, "process %d=%s", (int)c->pid, mode);
		break;
	case CHOICE_SITE:
		name_site(c, name);
		snprintf(text, size, "site %s of process %d=%s", name, (int)c->pid, mode);
		break;
	case CHOICE_TRIGGER:
		if (c->bytes == TRIGGER_NEVER)
			snprintf(text, size, "trigger %s:none", kinds[c->trigger]);
		else
			snprintf(text, size, "trigger %s:%" PRIu64, kinds[c->trigger], c->bytes);
		break;
	case CHOICE_PASSAGE:
		break;
	}
}

int session_choose(struct session *s, const struct choice *choice, char *why)
{
	char text[CHOICE_NAME + 64] = "";
	int err;

	if (!s->backend->choose) {
		snprintf(why, CHOICE_WHY, "the backend '%s' records all, which cannot be changed",
			 s->backend->name);
		return -EOPNOTSUPP;
	}
	err = s->backend->choose(s, choice, why);
	/* a passage chooses nothing by itself */
	if (err || choice->of == CHOICE_PASSAGE)
		return err;
	if (choice->of == CHOICE_SITE)
		s->sites[s->nr_sites++ % NR_SITES] = *choice;
	s->chosen = true;
	describe_choice(choice, text, sizeof(text));
	session_mark(s, MLK_MARK_CHANGE, text);
	return 0;
}

void session_count_choices(const struct session *s, struct choice_counts *counts)
{
	*counts = (struct choice_counts){.all = true,
					 .trigger = {TRIGGER_NEVER, TRIGGER_NEVER, TRIGGER_NEVER}};
	if (s->backend->count_choices)
		s->backend->count_choices(s, counts);
}

void session_mark(struct session *s, enum mlk_mark_kind kind, const char *text)
{
	const struct mlk_mark mark = {.time_ns = clock_now_ns(), .kind = kind, .text = text};

	if (s->out.err)
		return;
	s->marks++;
	trace_out_fail(&s->out, mlk_writer_marks(s->out.writer, &mark, 1));
}
