/* interpreter.c - see interpreter.h */
#include "record/interpreter/interpreter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/interpreter/php_find.h"
#include "record/interpreter/python_find.h"
#include "record/interpreter/ruby_find.h"
#include "record/interpreter/thread_values.h"

#define LOOKED (sizeof(((struct interpreter *)0)->looked) / sizeof(uint64_t))

/* Was the file of @m examined before?  From now on it was. */
static bool was_examined(struct interpreter *in, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < LOOKED; i++)
		if (in->looked[i] == m->inode)
			return true;
	in->looked[in->nr_looked++ % LOOKED] = m->inode;
	return false;
}

static const struct interpreter_kind *const kinds[] = {&python_kind, &php_kind, &ruby_kind};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

bool interpreter_is_likely(const struct mlk_mapping *m)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		if (interpreter_is_named(kinds[i], m))
			return true;
	return false;
}

/* Is an interpreter in the file of @m? */
static bool find_in(struct interpreter *in, const struct target *t, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		if (interpreter_is_named(kinds[i], m) &&
		    interpreter_find(&in->place, kinds[i], t, m))
			return true;
	return false;
}

/* Has musl the threads' variables of the process?  What is known of the vector of blocks is how
 * glibc has it. */
static bool has_musl(const struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (strstr(maps->v[i].path, "/ld-musl-"))
			return true;
	return false;
}

/* Is code of the interpreter's file at @m; and that which was found? */
static bool is_file(const struct interpreter *in, const struct mlk_mapping *m)
{
	return m->perms & MLK_PERM_X && m->inode == in->inode;
}

static bool is_found(const struct interpreter *in, const struct mlk_mapping *m)
{
	const uint64_t code = in->place.ranges[0].start;

	return is_file(in, m) && m->start <= code && code < m->end;
}

/* Is the interpreter elsewhere by now?  See interpreter_look(). */
static bool has_moved(const struct interpreter *in, const struct maps *maps,
		      const struct mlk_mapping *now)
{
	bool is_elsewhere = false;

	if (!in->found || !in->place.nr_ranges)
		return false;
	if (now)
		return is_file(in, now) && !is_found(in, now);
	for (size_t i = 0; i < maps->nr; i++) {
		if (is_found(in, &maps->v[i]))
			return false;
		is_elsewhere = is_elsewhere || is_file(in, &maps->v[i]);
	}
	return is_elsewhere;
}

/* Look at @m.  Returns whether the interpreter is there. */
static bool look_at(struct interpreter *in, const struct target *t, const struct mlk_mapping *m)
{
	if (!(m->perms & MLK_PERM_X) || !m->inode || !interpreter_is_likely(m) ||
	    was_examined(in, m) || !find_in(in, t, m))
		return false;
	in->found = true;
	in->inode = m->inode;
	return true;
}

static bool look_for_interpreter(struct interpreter *in, const struct target *t,
				 const struct maps *maps, const struct mlk_mapping *now,
				 uint64_t since_ns)
{
	bool is = false;

	if (has_moved(in, maps, now)) {
		in->found = false;
		in->place = (struct interpreter_place){0};
		memset(in->looked, 0, sizeof(in->looked));
	}
	if (in->found)
		return false;
	is = now && look_at(in, t, now);
	for (size_t i = 0; !is && i < maps->nr; i++)
		is = look_at(in, t, &maps->v[i]);
	if (is && in->place.at.current_kind == PYTHON_DYNAMIC && has_musl(maps))
		interpreter_give_up(&in->place, "where musl has its threads is not known");
	if (is)
		in->since_ns = since_ns;
	return is;
}

/* Look for the C library, which may be mapped after the interpreter.  Without it a thread has
 * frames only while it has the interpreter's lock. */
static bool look_for_values(struct interpreter *in, const struct target *t, const struct maps *maps)
{
	struct event_python *at = &in->place.at;

	if (in->place.language != MLK_LANGUAGE_PYTHON)
		return false; /* of others, key is something else */
	for (size_t i = 0; at->key && !at->specific && i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		if (m->perms & MLK_PERM_X && m->inode && thread_values_is_likely(m) &&
		    !was_examined(in, m))
			at->specific = thread_values_find(t, m);
	}
	return at->key && at->specific;
}

bool interpreter_look(struct interpreter *in, const struct target *t, const struct maps *maps,
		      const struct mlk_mapping *now, uint64_t since_ns)
{
	const bool had_values = in->place.at.specific;
	const bool found = look_for_interpreter(in, t, maps, now, since_ns);
	const bool has_values = look_for_values(in, t, maps);

	return found || (has_values && !had_values);
}

void interpreter_within(struct interpreter *in)
{
	if (in->place.at.shape != PYTHON_IS_RUBY)
		return;
	interpreter_give_up(&in->place, "only eBPF reads them, as its objects move");
}

void interpreter_inherit(struct interpreter *in, const struct interpreter *from, uint64_t since_ns)
{
	in->found = from->found;
	in->place = from->place;
	in->inode = from->inode;
	in->since_ns = since_ns;
}

#define MAX_WAITING 1024u

/* Where frames of thread @tid wait; with @tid 0: where some may.  NULL: there is no such place. */
static struct waiting_frames *find_waiting(const struct interpreter *in, uint32_t tid)
{
	for (size_t i = 0; i < in->nr_waiting; i++)
		if (in->waiting[i].tid == tid)
			return &in->waiting[i];
	return NULL;
}

/* A place for frames of thread @tid.  Of threads that ended meanwhile the frames stay: when there
 * are too many, the first ones give way.  NULL: no memory. */
static struct waiting_frames *place_for(struct interpreter *in, uint32_t tid)
{
	struct waiting_frames *w = find_waiting(in, tid);

	if (!w)
		w = find_waiting(in, 0);
	if (w)
		return w;
	if (in->nr_waiting == MAX_WAITING)
		return &in->waiting[0];
	w = realloc(in->waiting, (in->nr_waiting + 1) * sizeof(*w));
	if (!w)
		return NULL;
	in->waiting = w;
	return &w[in->nr_waiting++];
}

int interpreter_add_frames(struct interpreter *in, const struct event_frames *frames, size_t size)
{
	struct waiting_frames *w;

	if (frames->nr > EVENT_PYTHON_FRAMES ||
	    size < sizeof(*frames) + frames->nr * sizeof(w->frames[0]))
		return -EPROTO;
	w = place_for(in, event_tid(frames->id));
	if (!w)
		return -ENOMEM;
	w->sp = frames->sp;
	w->tid = event_tid(frames->id);
	w->nr = frames->nr;
	w->flags = frames->flags;
	memcpy(w->frames, frames + 1, frames->nr * sizeof(w->frames[0]));
	return 0;
}

/* The number of the function of @frame; 0: it is not known.  One that is new is read. */
static uint32_t number_of(struct interpreter *in, struct code_table *codes, const struct target *t,
			  const struct event_frame *frame)
{
	uint64_t address = frame->code & ~EVENT_FRAME_ENTRY;
	uint32_t number = code_table_find(codes, address, frame->digest);
	struct mlk_code code;

	if (!address)
		return 0; /* a call without a frame */
	if (!number && in->place.at.version) {
		bool read = code_read(&code, t, &in->place.at, address, frame->digest);

		code.tgid = (uint32_t)t->pid;
		number = code_table_add(codes, address, frame->digest, read ? &code : NULL);
	}
	if (number && !codes->all[number - 1].gone)
		return number;
	in->counts[MLK_INTERPRETED_UNNAMED]++;
	codes->unnamed++;
	return 0;
}

int interpreter_frames(struct interpreter *in, struct code_table *codes, const struct target *t,
		       struct mlk_writer *w, uint32_t tid, uint64_t sp, struct mlk_code_frame *to,
		       uint32_t *nr)
{
	struct waiting_frames *from = find_waiting(in, tid);
	int err = 0;

	*nr = 0;
	if (!from || from->sp != sp || !from->nr) {
		if (from)
			from->tid = 0;
		in->counts[MLK_INTERPRETED_NONE]++;
		return 0;
	}
	for (uint32_t i = 0; i < from->nr && !err; i++) {
		const struct event_frame *frame = &from->frames[i];

		to[i].code = number_of(in, codes, t, frame);
		to[i].at = frame->at << MLK_CODE_FRAME_SHIFT;
		if (frame->code & EVENT_FRAME_ENTRY)
			to[i].at |= MLK_CODE_FRAME_ENTRY;
		if (to[i].code)
			err = code_table_write(codes, to[i].code, w);
	}
	*nr = from->nr;
	from->tid = 0;
	in->counts[MLK_INTERPRETED_KNOWN]++;
	in->counts[MLK_INTERPRETED_CUT] += (from->flags & EVENT_FRAMES_CUT) != 0;
	in->counts[MLK_INTERPRETED_BROKEN] += (from->flags & EVENT_FRAMES_BROKEN) != 0;
	if (from->flags & (EVENT_FRAMES_CUT | EVENT_FRAMES_BROKEN)) {
		to[*nr - 1].at |= MLK_CODE_FRAME_CUT;
		codes->ended++;
	}
	return err;
}

int interpreter_write(const struct interpreter *in, struct mlk_writer *w, uint32_t tgid)
{
	struct mlk_interpreter to = {.tgid = tgid,
				     .language = in->place.language,
				     .time_ns = in->since_ns,
				     .known = in->place.at.current_kind != 0,
				     .version = in->place.version,
				     .why = in->place.why,
				     .nr_ranges = in->place.nr_ranges};

	if (!in->found)
		return 0;
	memcpy(to.ranges, in->place.ranges, sizeof(to.ranges));
	memcpy(to.counts, in->counts, sizeof(to.counts));
	return mlk_writer_interpreter(w, &to);
}

void interpreter_release(struct interpreter *in)
{
	free(in->waiting);
	*in = (struct interpreter){0};
}
