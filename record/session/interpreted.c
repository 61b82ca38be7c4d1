/* interpreted.c - interpreters of recorded processes, and the frames of what they interpret */
#include <stddef.h>

#include "bpf/event.h"
#include "record/session/interpreted.h"

/* Who sends the events of @p is to send frames, too. */
static void tell_sender(struct session *s, const struct process *p)
{
	const struct interpreter *in = &p->interpreter;

	if (!in->place.at.current_kind)
		return;
	if (s->probes)
		trace_out_fail(&s->out, probes_set_python(s->probes, p->target.pid, &in->place.at));
	else if (s->preload)
		preload_set_python(s->preload, p->target.pid, in->program, &in->place.at);
}

void session_look_for_interpreter(struct session *s, struct process *p, const struct maps *maps,
				  const struct mlk_mapping *now, uint64_t since_ns)
{
	struct interpreter *in = &p->interpreter;
	uint32_t program = s->preload ? preload_program_of(s->preload, p->target.pid) : 0;

	if (s->looks)
		return;
	if (program != in->program)
		interpreter_release(in); /* it runs another program */
	in->program = program;
	if (!interpreter_look(in, &p->target, maps, now, since_ns))
		return;
	if (s->preload)
		interpreter_within(in);
	trace_out_fail(&s->out, interpreter_write(in, s->out.writer, (uint32_t)p->target.pid));
	tell_sender(s, p);
}

void session_tell_of_interpreters(struct session *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		struct process *p = s->all[i];

		if (!p->interpreter.found)
			continue;
		if (s->preload)
			p->interpreter.program = preload_program_of(s->preload, p->target.pid);
		tell_sender(s, p);
	}
}

/* The function at @address of process @tgid was sent as @parts. */
static int add_code(struct session *s, uint32_t tgid, uint64_t address, uint32_t digest,
		    const struct code_parts *parts)
{
	struct mlk_code code;

	if (code_table_find(&s->codes, address, digest) || !code_take(&code, parts))
		return 0;
	code.tgid = tgid;
	code_table_add(&s->codes, address, digest, &code);
	return 0;
}

static int take_code(struct session *s, const struct event_code_object *e)
{
	struct code_parts parts;

	if (!code_find_parts(&parts, e->code, e->len))
		return 0;
	return add_code(s, event_tgid(e->id), e->code->record.addr, (uint32_t)e->code->record.size,
			&parts);
}

/* The function of @e of process @p, whose lines were too many to be sent: it may be there still. */
static bool read_code(struct session *s, const struct process *p, const struct event_code_sent *e)
{
	const struct event_python *at = &p->interpreter.place.at;
	struct mlk_code code;

	if (code_table_find(&s->codes, e->code, e->digest))
		return true;
	if (!at->current_kind || !code_read(&code, &p->target, at, e->code, e->digest))
		return false;
	code.tgid = event_tgid(e->id);
	return code_table_add(&s->codes, e->code, e->digest, &code) != 0;
}

/* The same that probes send, in @size bytes. */
static int take_sent_code(struct session *s, const struct process *p,
			  const struct event_code_sent *e, size_t size)
{
	const bool no_lines = e->lines_len == PYTHON_NO_LINES;
	const uint32_t lines_len = no_lines ? 0 : e->lines_len;
	const struct code_parts parts = {.version = e->version,
					 .first_line = e->first_line,
					 .lines_len = lines_len,
					 .no_lines = no_lines,
					 .name = e->name,
					 .file = e->file,
					 .name_bytes = e->name_bytes,
					 .file_bytes = e->file_bytes,
					 .lines = e->lines};

	if (lines_len > EVENT_CODE_LINES ||
	    size < offsetof(struct event_code_sent, lines) + lines_len)
		return 0; /* it is read when it is met */
	if (no_lines && p && read_code(s, p, e))
		return 0;
	return add_code(s, event_tgid(e->id), e->code, e->digest, &parts);
}

int session_take_frames(struct session *s, struct process *p, const void *data, size_t size)
{
	const struct event_frames *frames = data;

	if (frames->head.type == EVENT_CODE)
		return s->probes ? take_sent_code(s, p, data, size) : take_code(s, data);
	return p ? interpreter_add_frames(&p->interpreter, frames, size) : 0;
}

void session_put_frames(struct session *s, struct process *p, struct mlk_event *ev,
			struct mlk_code_frame *room)
{
	if (!p->interpreter.place.at.current_kind)
		return;
	trace_out_fail(&s->out,
		       interpreter_frames(&p->interpreter, &s->codes, &p->target, s->out.writer,
					  ev->tid, ev->regs[MLK_SP_REG], room, &ev->nr_frames));
	ev->frames = room;
}

void session_write_interpreters(struct session *s)
{
	for (size_t i = 0; i < s->nr && !s->out.err; i++)
		trace_out_fail(&s->out, interpreter_write(&s->all[i]->interpreter, s->out.writer,
							  (uint32_t)s->all[i]->target.pid));
}
