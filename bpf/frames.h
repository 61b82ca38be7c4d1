/* frames.h - the frames of CPython, PHP and Ruby, sent before the allocation that they made */
#ifndef MLEAK_BPF_FRAMES_H
#define MLEAK_BPF_FRAMES_H

#include "bpf/ring.h"
#include "bpf/send_small.h"
#include "bpf/state.h"

#define PYTHON_READ(to, addr, len) bpf_probe_read_user((to), (len), (const void *)(addr))
#define PYTHON_INLINE		   static __always_inline

#include "bpf/frames_walk.h"

/* Where it is, by process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct event_python);
} pythons SEC(".maps");

/* Code objects that were sent, and chains of such alone: of what was not, name and lines are sent.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, __u8);
} sent SEC(".maps");

/* An event being made, with room for what makes it a multiple of lines. */
struct frames_event {
	struct event_frames event;
	struct event_frame frames[EVENT_PYTHON_FRAMES];
	__u8 rest[EVENT_LINE];
	struct python_walk walk;
	__u64 chain;  /* of all code objects */
	__u64 unsent; /* not 0: one of them could not be sent */
	struct event_code_sent code;
};

/* Each thread's, as it may be interrupted in it by another. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct frames_event);
} frames_events SEC(".maps");

/* The process of @id runs another program, or ends. */
static __noinline void forget_interpreter(__u64 id)
{
	__u32 tgid = event_tgid(id);

	if (interpreters)
		bpf_map_delete_elem(&pythons, &tgid);
}

/* The process of @id forks, and the child has number @tgid. */
static __noinline void inherit_interpreter(__u64 id, __u32 tgid)
{
	__u32 parent = event_tgid(id);
	const struct event_python *py = interpreters ? bpf_map_lookup_elem(&pythons, &parent) : 0;

	if (py)
		bpf_map_update_elem(&pythons, &tgid, py, BPF_ANY);
}

/* Add the next frame to @e.  0: there may be more.  Not static: it is verified once, not for each
 * frame. */
__noinline int add_frame(struct frames_event *e, const struct event_python *py)
{
	__u32 nr;
	int err;

	if (!e || !py)
		return 1;
	nr = e->event.nr;
	if (!e->walk.frame)
		return 1;
	if (nr >= EVENT_PYTHON_FRAMES) {
		e->event.flags |= EVENT_FRAMES_CUT;
		return 1;
	}
	err = frames_step(&e->walk, py, &e->frames[nr]);
	if (err < 0)
		e->event.flags |= EVENT_FRAMES_BROKEN;
	if (err)
		return err < 0;
	e->chain = python_mix(e->chain, (e->frames[nr].code & ~EVENT_FRAME_ENTRY) ^
						(__u64)e->frames[nr].digest << 32);
	e->event.nr = nr + 1;
	return 0;
}

/* Send the @len bytes at @head, an event of @type; the caller knows that there are as many as make
 * whole lines. */
#define OUTPUT(st, type, head_, len)                                                \
	({                                                                          \
		__u64 flags_ = spend((st), (__u32)(len));                           \
		long err_;                                                          \
                                                                                    \
		(head_)->word = event_word((type), 0, 0);                           \
		err_ = bpf_ringbuf_output(&front, (head_), (len), flags_);          \
		if (err_) {                                                         \
			(head_)->word = event_word((type), 0, front_by_now());      \
			err_ = bpf_ringbuf_output(&events, (head_), (len), flags_); \
		}                                                                   \
		err_;                                                               \
	})

/* @len bytes, with as many more as make whole lines. */
static __always_inline __u64 whole_lines(__u64 len)
{
	return ((len + 8 + EVENT_LINE - 1) & ~(__u64)(EVENT_LINE - 1)) - 8;
}

/* Send @e.  Returns 0, or not. */
static __always_inline long output_frames(struct thread_state *st, struct frames_event *e)
{
	__u64 len = whole_lines(sizeof(e->event) + e->event.nr * sizeof(e->frames[0]));

	barrier_var(len);
	if (len > sizeof(e->event) + sizeof(e->frames) + sizeof(e->rest))
		return -1;
	return OUTPUT(st, EVENT_FRAMES, &e->event.head, len);
}

/* Copy at most @most bytes, a constant, of the string at @addr to @to. */
static __always_inline void copy_text(struct python_walk *w, const struct event_python *py,
				      __u64 addr, struct python_text *text, void *to, __u32 most)
{
	__u64 width, len, bytes;
	__u32 state;

	text->len = text->width = 0;
	if (!python_is_address(addr) || PYTHON_READ(w->part, addr + 16, 24))
		return;
	state = python_text_state(py, w->part[2]);
	if (!(state & PYTHON_COMPACT))
		return;
	width = state & PYTHON_KIND;
	len = w->part[0] < most / 4 || (width == 1 && w->part[0] < most) ? w->part[0] : most / 4;
	bytes = len * width;
	barrier_var(bytes);
	if (bytes > most ||
	    bpf_probe_read_user(to, bytes,
				(void *)(addr + (state & PYTHON_ASCII ? py->text : py->wide_text))))
		return;
	text->len = (__u32)len;
	text->width = (__u32)width;
}

/* Copy the lines of @e->code, whose table is at @lines. */
static __always_inline void copy_lines(struct frames_event *e, __u64 lines)
{
	__u64 len;

	e->code.lines_len = PYTHON_NO_LINES;
	if (!python_is_address(lines) || PYTHON_READ(e->walk.part, lines + 16, 8))
		return;
	len = e->walk.part[0];
	barrier_var(len);
	if (len <= EVENT_CODE_LINES &&
	    !bpf_probe_read_user(e->code.lines, len, (void *)(lines + 32)))
		e->code.lines_len = (__u32)len;
}

/* Copy at most @most bytes, a constant, of @text to @to.  Returns how many; none if it cannot be
 * read. */
static __always_inline __u32 copy_plain_text(const struct plain_text *text, void *to, __u32 most)
{
	__u64 len = text->len < most ? text->len : most;

	barrier_var(len);
	return len > most || bpf_probe_read_user(to, len, (void *)text->addr) ? 0 : (__u32)len;
}

/* Set the texts of @e->code, which is a function of PHP or Ruby: its lines are the name of its
 * class. Not static: it is verified once. */
__noinline int copy_plain_code(struct frames_event *e, const struct event_python *py)
{
	struct plain_code found = {0};

	if (!e || !py || frames_find_parts(&e->walk, py, e->code.code, &found))
		return -1;
	e->code.name.width = e->code.file.width = 1;
	e->code.name.len = copy_plain_text(&found.name, e->code.name_bytes, EVENT_CODE_NAME);
	e->code.file.len = copy_plain_text(&found.file, e->code.file_bytes, EVENT_CODE_FILE);
	e->code.lines_len = copy_plain_text(&found.class, e->code.lines, EVENT_CODE_NAME);
	e->code.first_line = found.first_line;
	return 0;
}

/* The same of CPython's code object. */
static __always_inline int copy_python_code(struct frames_event *e, const struct event_python *py,
					    __u64 code)
{
	if (PYTHON_READ(e->walk.code, code, PYTHON_CODE_BYTES))
		return -1;
	e->code.first_line = 0;
	bpf_probe_read_user(&e->code.first_line, 4, (void *)(code + py->first_line));
	copy_text(&e->walk, py, e->walk.code[py->code_name & PYTHON_WORD_MAX], &e->code.name,
		  e->code.name_bytes, EVENT_CODE_NAME);
	copy_text(&e->walk, py, e->walk.code[py->code_file & PYTHON_WORD_MAX], &e->code.file,
		  e->code.file_bytes, EVENT_CODE_FILE);
	copy_lines(e, e->walk.code[py->code_lines & PYTHON_WORD_MAX]);
	return 0;
}

/* Send the code object of frame @i of @e, unless it was sent.  What fails is noted in @e: of a
 * result the verifier would follow each number of failures.  Not static: it is verified once. */
__noinline int send_code(struct thread_state *st, struct frames_event *e,
			 const struct event_python *py, __u32 i)
{
	__u64 key, code, len;
	__u8 one = 1;

	if (!st || !e || !py || i >= EVENT_PYTHON_FRAMES)
		return 0;
	code = e->frames[i].code & ~EVENT_FRAME_ENTRY;
	key = python_mix(st->id >> 32 ^ code, e->frames[i].digest);
	if (!code || bpf_map_lookup_elem(&sent, &key))
		return 0;
	e->unsent++;
	e->code.id = st->id;
	e->code.code = code;
	e->code.digest = e->frames[i].digest;
	e->code.version = py->version;
	if (frames_are_plain(py) ? copy_plain_code(e, py) : copy_python_code(e, py, code))
		return 0;
	len = e->code.lines_len <= EVENT_CODE_LINES ? e->code.lines_len : 0;
	len = whole_lines(__builtin_offsetof(struct event_code_sent, lines) + len);
	barrier_var(len);
	if (len > sizeof(e->code) || OUTPUT(st, EVENT_CODE, &e->code.head, len))
		return 0;
	e->unsent--;
	bpf_map_update_elem(&sent, &key, &one, BPF_ANY);
	return 0;
}

/* What the loops below are about. */
struct frames_loop {
	struct thread_state *st;
	struct frames_event *e;
	const struct event_python *py;
};

/* Add the next frame.  1: there are no more. */
static long walk_frame(__u32 i, struct frames_loop *l)
{
	(void)i;
	return add_frame(l->e, l->py) != 0;
}

/* The code object of frame @i.  1: there is no such frame. */
static long send_frame(__u32 i, struct frames_loop *l)
{
	if (!l->e || i >= l->e->event.nr)
		return 1;
	send_code(l->st, l->e, l->py, i);
	return 0;
}

/* Send those code objects of @e that were not.  As a callback a loop's body is followed once, not
 * as often as it may run. */
static __always_inline void send_codes(struct thread_state *st, struct frames_event *e,
				       const struct event_python *py)
{
	__u64 key = python_mix(e->chain, st->id >> 32);
	__u8 one = 1;

	if (bpf_map_lookup_elem(&sent, &key))
		return;
	e->unsent = 0;
	bpf_loop(EVENT_PYTHON_FRAMES, send_frame, &(struct frames_loop){st, e, py}, 0);
	if (!e->unsent)
		bpf_map_update_elem(&sent, &key, &one, BPF_ANY);
}

/* Go to the innermost frame of CPython or Ruby of @task, which runs.  -1: it executes none. */
static __always_inline int find_frame(struct python_walk *w, const struct event_python *py,
				      struct task_struct *task)
{
	__u64 thread = BPF_CORE_READ(task, thread.fsbase);
	__u64 state = python_current_state(w, py, thread);

	if (py->shape == PYTHON_IS_RUBY)
		return ruby_begin(w, state);
	if (!python_is_own(w, py, state, thread))
		state = python_kept_state(w, py, thread);
	return python_begin(w, py, state, thread);
}

/* Send the frames of the thread @st, if it executes any, for an allocation at @sp.  Not static: it
 * is verified once. */
__noinline int record_frames(struct thread_state *st, __u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct event_python *py;
	struct frames_event *e;
	__u32 tgid;

	if (!st)
		return 0;
	tgid = event_tgid(st->id);
	py = bpf_map_lookup_elem(&pythons, &tgid);
	if (!py)
		return 0;
	e = bpf_task_storage_get(&frames_events, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e) {
		count(&drops.frames);
		return 0;
	}
	if (py->shape == PYTHON_IS_PHP ? php_begin(&e->walk, py, event_tid(st->id) == tgid)
				       : find_frame(&e->walk, py, task))
		return 0;
	e->event.id = st->id;
	e->event.sp = sp;
	e->event.nr = e->event.flags = 0;
	e->chain = 0;
	bpf_loop(EVENT_PYTHON_FRAMES + 1, walk_frame, &(struct frames_loop){st, e, py}, 0);
	if (e->walk.frame && !e->event.flags)
		e->event.flags |= EVENT_FRAMES_CUT;
	send_codes(st, e, py);
	if (output_frames(st, e))
		count(&drops.frames);
	return 0;
}

#endif
