/* python.c - the frames of CPython and PHP at an allocation, and each function once
 *
 * The memory is read as it is: only the thread itself changes its frames and what they hold, also
 * while it does not hold the interpreter's lock.  Of other threads nothing is read.
 */
#include "record/libpreload/event/python.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "record/libpreload/event/reserve.h"

#define PYTHON_READ(to, addr, len) read_memory((to), (addr), (len))
#define PYTHON_INLINE		   static inline

__attribute__((always_inline)) static inline int read_memory(void *to, uint64_t addr, size_t len)
{
	__builtin_memcpy(to, (const void *)(uintptr_t)addr, len);
	return 0;
}

#include "bpf/frames_walk.h"

#define SEEN	   8192u /* code objects; a power of two */
#define LOOK_AGAIN 64u	 /* at a state that was another thread's: it may be a new one */

/* What was told of code objects, by address and digest. */
static uint64_t seen[SEEN];

static struct event_python known; /* where the interpreter is, */
static uint32_t known_round;	  /* as the recorder said it the so manyth time */

/* The recorder has found an interpreter, or another one. */
static const struct event_python *learn(uint32_t round)
{
	if (round == known_round)
		return &known;
	known = preload_state.facts->python;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	known_round = round;
	/* of the program that this process ran before the addresses mean nothing; and Ruby's
	 * objects are moved while threads run on, so that they are not to be read here */
	if (known.program != preload_state.program || !preload_facts_are_new() ||
	    known.shape == PYTHON_IS_RUBY ||
	    (!frames_are_plain(&known) && !python_is_address(known.code_type)) ||
	    (known.current_kind != PYTHON_THREAD && !python_is_address(known.current)))
		known.current_kind = PYTHON_NOWHERE;
	return &known;
}

/* Where what @frame's code object is remembered; NULL: it is. */
static uint64_t *find_unseen(const struct event_frame *frame, uint64_t *key)
{
	uint64_t code = frame->code & ~EVENT_FRAME_ENTRY;
	uint64_t *slot;

	*key = python_mix(code, frame->digest) | 1;
	slot = &seen[*key >> 40 & (SEEN - 1)];
	return __atomic_load_n(slot, __ATOMIC_RELAXED) == *key ? NULL : slot;
}

/* Where a function has its texts, and what its lines are; all of these are there. */
struct parts {
	struct python_text name, file;
	uint64_t name_at, file_at, lines_at; /* their characters and bytes */
	uint64_t lines_len;
	uint32_t first_line;
};

/* As much of @text as is told. */
static struct python_text tell_text(const struct plain_text *text, uint32_t most)
{
	return (struct python_text){text->len < most ? (uint32_t)text->len : most, 1};
}

/* The parts of the function at @code of PHP or Ruby, whose lines are the name of its class. */
static struct parts find_plain_parts(struct python_walk *w, const struct event_python *py,
				     uint64_t code)
{
	struct plain_code found = {0};

	(void)frames_find_parts(w, py, code, &found);
	return (struct parts){
		.name = tell_text(&found.name, PYTHON_NAME_MAX),
		.file = tell_text(&found.file, PYTHON_FILE_MAX),
		.name_at = found.name.addr,
		.file_at = found.file.addr,
		.lines_at = found.class.addr,
		.lines_len = tell_text(&found.class, PYTHON_NAME_MAX).len,
		.first_line = found.first_line,
	};
}

/* What is known of the string at @addr. */
static struct python_text look_at_text(const struct event_python *py, uint64_t addr, uint32_t most)
{
	struct python_text text = {0};
	uint64_t len;
	uint32_t state;

	if (!python_is_address(addr) || PYTHON_READ(&len, addr + 16, 8) ||
	    PYTHON_READ(&state, addr + 32, 4))
		return text;
	state = python_text_state(py, state);
	if (!(state & PYTHON_COMPACT))
		return text;
	text.width = state & PYTHON_KIND;
	text.len = len < most ? (uint32_t)len : most;
	if (text.width != 1 && text.width != 2 && text.width != 4)
		text = (struct python_text){0};
	return text;
}

/* Where the characters are of a string. */
static uint64_t characters_of(const struct event_python *py, uint64_t addr)
{
	uint32_t state;

	(void)PYTHON_READ(&state, addr + 32, 4);
	return addr + (python_text_state(py, state) & PYTHON_ASCII ? py->text : py->wide_text);
}

/* Copy @len bytes from @from to @to.  Returns where what comes next goes. */
static uint8_t *copy_padded(uint8_t *to, uint64_t from, uint32_t len)
{
	if (len)
		__builtin_memcpy(to, (const void *)(uintptr_t)from, len);
	return to + python_padded(len);
}

/* The parts of the code object at @code. */
static struct parts find_parts(const struct event_python *py, uint64_t code)
{
	uint64_t words[PYTHON_CODE_BYTES / 8], name, file, lines;
	struct parts p;

	(void)PYTHON_READ(words, code, sizeof(words));
	name = words[py->code_name];
	file = words[py->code_file];
	lines = words[py->code_lines];
	(void)PYTHON_READ(&p.first_line, code + py->first_line, 4);
	(void)PYTHON_READ(&p.lines_len, lines + 16, 8);
	p.name = look_at_text(py, name, PYTHON_NAME_MAX);
	p.file = look_at_text(py, file, PYTHON_FILE_MAX);
	p.name_at = name ? characters_of(py, name) : 0;
	p.file_at = characters_of(py, file);
	p.lines_at = lines + 32;
	return p;
}

/* Tell the recorder of the function of @frame.  False: there is no room. */
static bool tell_code(struct preload_header *h, struct thread_ring *lane, uint64_t sp,
		      const struct event_python *py, const struct event_frame *frame)
{
	const uint64_t at = frame->code & ~EVENT_FRAME_ENTRY;
	struct parts p = frames_are_plain(py) ? find_plain_parts(&lane->python.walk, py, at)
					      : find_parts(py, at);
	const bool no_lines = p.lines_len > PYTHON_LINES_MAX;
	uint32_t len = python_padded(p.name.len * p.name.width) +
		       python_padded(p.file.len * p.file.width) +
		       (uint32_t)sizeof(struct preload_code);
	const uint32_t bytes = no_lines || len + python_padded((uint32_t)p.lines_len) >
						       preload_settings.sizes.ring_size / 4
				       ? 0
				       : (uint32_t)p.lines_len;
	struct preload_code *e;
	uint8_t *to;

	len += python_padded(bytes);
	to = lane_reserve(h, lane, len + (uint32_t)sizeof(struct preload_base),
			  (uint32_t)lane->size / 16);
	if (UNLIKELY(!to))
		return false;
	e = (struct preload_code *)start_record(lane, to, sp);
	e->record = (struct preload_record){.len8 = (uint16_t)(len / 8),
					    .type = EVENT_CODE,
					    .after = e->record.after,
					    .addr = at,
					    .size = frame->digest | (uint64_t)p.first_line << 32};
	e->name = p.name;
	e->file = p.file;
	e->lines_len = bytes == p.lines_len ? bytes : PYTHON_NO_LINES;
	e->version = py->version;
	to = copy_padded((uint8_t *)(e + 1), p.name_at, p.name.len * p.name.width);
	to = copy_padded(to, p.file_at, p.file.len * p.file.width);
	copy_padded(to, p.lines_at, bytes);
	lane_publish(lane, len);
	return true;
}

/* Tell of those code objects of the @nr frames that were not told of yet. */
static void tell_codes(struct preload_header *h, struct thread_ring *lane, uint64_t sp,
		       const struct event_python *py, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct event_frame *frame = &lane->python.frames[i];
		uint64_t key, *slot = find_unseen(frame, &key);

		if (UNLIKELY(slot != NULL) && frame->code != EVENT_FRAME_ENTRY &&
		    tell_code(h, lane, sp, py, frame))
			__atomic_store_n(slot, key, __ATOMIC_RELAXED);
	}
}

/* Have the kernel compare the word at @address with @value (futex(2)).  Returns -ETIMEDOUT if it is
 * that, and -EFAULT where nothing is mapped. */
static long compare(uint64_t address, uint32_t value)
{
	const struct {
		int64_t s, ns;
	} no_time = {0, 0};

	return preload_syscall(SYS_futex, (long)address, FUTEX_WAIT_PRIVATE, value, (long)&no_time);
}

/* Is the interpreter still where it was?  A library may have been unloaded, as Apache does with its
 * modules at its start, and the recorder hears of it later. */
static bool is_there(const struct event_python *py)
{
	if (LIKELY(!py->loaded || py->current_kind == PYTHON_THREAD))
		return true;
	/* with what it is not: else the thread would sleep, if for no time */
	return !preload_no_calls() && compare(py->current, UINT32_MAX) != -EFAULT;
}

/*
 * Is @state this thread's, and so stays?  *@no is one that was not.  Another thread may end just
 * now, and its state with it, so that is never touched: the kernel compares a word of it.
 */
static bool is_own_state(struct thread_ring *lane, const struct event_python *py, uint64_t state,
			 uint64_t *no)
{
	const uint32_t self = (uint32_t)(uint64_t)__builtin_thread_pointer();

	if (LIKELY(state == lane->python.own))
		return state != 0;
	if (!python_is_address(state) || preload_no_calls() ||
	    (state == *no && ++lane->python.passed % LOOK_AGAIN))
		return false;
	*no = state;
	if (compare(state + py->state_thread, self) != -ETIMEDOUT)
		return false;
	lane->python.own = state;
	return true;
}

/* The state of this thread: that of the interpreter that it executes just now; or the one that it
 * keeps while it has left the interpreter to others.  0: it has none. */
static uint64_t find_state(struct thread_ring *lane, const struct event_python *py)
{
	const uint64_t self = (uint64_t)__builtin_thread_pointer();
	struct python_walk *w = &lane->python.walk;
	uint64_t state = python_current_state(w, py, self);

	/* else each thread has a pointer to its own */
	if (py->current_kind == PYTHON_GLOBAL ? is_own_state(lane, py, state, &lane->python.other)
					      : state != 0)
		return state;
	state = python_kept_state(w, py, self);
	return is_own_state(lane, py, state, &lane->python.refused) ? state : 0;
}

enum { MAIN_THREAD = 1, OTHER_THREAD };

/* Is this the main thread of the process?  It is asked once; where the library makes no calls it is
 * not known. */
static bool is_main_thread(struct thread_ring *lane)
{
	if (!lane->python.own && !preload_no_calls())
		lane->python.own =
			(uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0) == preload_state.pid
				? MAIN_THREAD
				: OTHER_THREAD;
	return lane->python.own == MAIN_THREAD;
}

/* Go to the innermost frame.  -1: this thread executes none. */
static int begin(struct thread_ring *lane, const struct event_python *py)
{
	struct python_walk *w = &lane->python.walk;
	uint64_t state;

	if (UNLIKELY(!is_there(py)))
		return -1;
	if (py->shape == PYTHON_IS_PHP)
		return php_begin(w, py, is_main_thread(lane));
	state = find_state(lane, py);
	return state ? python_begin(w, py, state, (uint64_t)__builtin_thread_pointer()) : -1;
}

/* Fill lane->python.frames.  Returns how many there are; *@flags as event_frames has them. */
static uint32_t walk(struct thread_ring *lane, const struct event_python *py, uint32_t *flags)
{
	struct python_walk *w = &lane->python.walk;
	uint32_t nr = 0, steps = 0;

	*flags = 0;
	if (begin(lane, py)) {
		*flags = EVENT_FRAMES_NONE;
		return 0;
	}
	while (w->frame && !*flags) {
		int err;

		if (steps++ == EVENT_PYTHON_FRAMES) {
			*flags = EVENT_FRAMES_CUT;
			break;
		}
		err = frames_step(w, py, &lane->python.frames[nr]);
		if (err < 0)
			*flags = EVENT_FRAMES_BROKEN;
		else
			nr += !err;
	}
	return nr;
}

void preload_python(struct preload_header *h, struct thread_ring *lane, uint64_t sp, uint32_t round)
{
	const struct event_python *py = learn(round);
	uint32_t flags, nr, len;
	struct preload_frames *e;
	uint8_t *to;

	if (!py->current_kind)
		return;
	nr = walk(lane, py, &flags);
	if (UNLIKELY(nr > preload_settings.sizes.ring_size / 64)) {
		nr = preload_settings.sizes.ring_size / 64; /* a quarter of a small ring */
		flags = EVENT_FRAMES_CUT;
	}
	tell_codes(h, lane, sp, py, nr);
	len = (uint32_t)(sizeof(*e) + nr * sizeof(e->frames[0]));
	to = lane_reserve(h, lane, len + (uint32_t)sizeof(struct preload_base),
			  (uint32_t)lane->size / 16);
	if (UNLIKELY(!to)) {
		if (flags != EVENT_FRAMES_NONE)
			thread_ring_lost(h, lane, PRELOAD_LOST_FRAMES);
		return;
	}
	e = (struct preload_frames *)start_record(lane, to, sp);
	e->record.len8 = (uint16_t)(len / 8);
	e->record.type = EVENT_FRAMES;
	e->record.func = 0;
	e->record.addr = sp;
	e->record.size = flags | (uint64_t)nr << 32;
	__builtin_memcpy(e->frames, lane->python.frames, nr * sizeof(e->frames[0]));
	lane_publish(lane, len);
}
