/* go_stack.c - see go_stack.h */
#include "record/golang/go_stack.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/dwunw_event.h"

#define NR_KEPT	  256	/* threads, by their ids */
#define MAX_PART  65536 /* bytes */
#define MAX_BYTES (MAX_PART + 8)

/* The goroutine's stack that waits for the next allocation of a thread. */
struct kept {
	struct event_part part;
	uint8_t *bytes; /* of part.len; NULL: none waits */
};

struct go_stacks {
	struct kept kept[NR_KEPT];
	uint8_t bytes[MAX_BYTES];
};

/* Two stacks that become one. */
struct joining {
	const struct go_program *program;
	const struct go_stack *own; /* the thread's */
	const struct kept *other;   /* the goroutine's */
	uint8_t *to;
	uint32_t len, limit;
	uint64_t
		left; /* the own stack's pointer where the goroutine's was left, the call at hand */
	uint64_t from;	   /* the goroutine's stack pointer then */
	uint64_t own_from; /* the own stack is laid down from here on, */
	uint64_t moved;	   /* so many bytes up */
	uint32_t flags;
};

struct go_stacks *go_stacks_new(void)
{
	return calloc(1, sizeof(struct go_stacks));
}

void go_stacks_free(struct go_stacks *gs)
{
	for (size_t i = 0; gs && i < NR_KEPT; i++)
		free(gs->kept[i].bytes);
	free(gs);
}

static struct kept *kept_of(struct go_stacks *gs, uint64_t id)
{
	return &gs->kept[event_tid(id) % NR_KEPT];
}

bool go_stacks_keep(struct go_stacks *gs, const struct event_part *part, size_t size)
{
	struct kept *k;

	if (size < sizeof(*part) || part->len > size - sizeof(*part) || part->len > MAX_PART ||
	    part->len % 8 || part->hi < part->sp || part->hi - part->sp < part->len)
		return false;
	k = kept_of(gs, part->id);
	free(k->bytes);
	k->part = *part;
	k->bytes = part->len ? malloc(part->len) : NULL;
	if (k->bytes)
		memcpy(k->bytes, part->bytes, part->len);
	return true;
}

/* The word at @addr of @len bytes that were at @start.  False: it is not among them. */
static bool word_in(const uint8_t *bytes, uint64_t start, uint64_t len, uint64_t addr,
		    uint64_t *word)
{
	if (addr < start || len < sizeof(*word) || addr - start > len - sizeof(*word))
		return false;
	memcpy(word, bytes + (addr - start), sizeof(*word));
	return true;
}

static bool own_word(const struct joining *j, uint64_t addr, uint64_t *word)
{
	return word_in(j->own->bytes, j->own->sp, j->own->len, addr, word);
}

static bool other_word(const struct joining *j, uint64_t addr, uint64_t *word)
{
	return word_in(j->other->bytes, j->other->part.sp, j->other->part.len, addr, word);
}

/* Where on the own stack the return address of a call of C is, when that was entered with the stack
 * pointer @left. */
static uint64_t return_slot(const struct joining *j, uint64_t left)
{
	return ((left - j->program->call.below) & ~15ull) - 8;
}

/* Does the own stack say, where it was entered with @left, that the goroutine's was left for it?
 * *@from is then that one's pointer. */
static bool is_call(const struct joining *j, uint64_t left, uint64_t *from)
{
	const struct go_call *call = &j->program->call;
	uint64_t at = return_slot(j, left), ret, g, depth;

	if (!own_word(j, at, &ret) || !own_word(j, at + 8 + call->g, &g) ||
	    !own_word(j, at + 8 + call->depth, &depth) || ret != call->ret || g != j->other->part.g)
		return false;
	*from = j->other->part.hi - depth;
	return *from >= j->other->part.sp && *from < j->other->part.hi && !(*from & 7);
}

/* Append @len bytes at @bytes; what is beyond the limit is cut off.  False: that was so. */
static bool append(struct joining *j, const uint8_t *bytes, uint64_t len)
{
	uint64_t room = j->limit - j->len;

	if (len > room) {
		memcpy(j->to + j->len, bytes, (size_t)room);
		j->len = j->limit;
		j->flags |= DWUNW_EVENT_STACK_LIMIT;
		return false;
	}
	memcpy(j->to + j->len, bytes, (size_t)len);
	j->len += (uint32_t)len;
	return true;
}

/* Append [@a, @b) of the own stack.  Words that point into what is moved are moved, too: saved
 * frame pointers, by which the unwinder goes. */
static bool append_own(struct joining *j, uint64_t a, uint64_t b)
{
	uint64_t end = j->own->sp + j->own->len, word;
	uint32_t at = j->len;
	bool whole = append(j, j->own->bytes + (a - j->own->sp), b - a);

	if (!j->moved)
		return whole;
	for (; at + sizeof(word) <= j->len; at += sizeof(word)) {
		memcpy(&word, j->to + at, sizeof(word));
		if (word >= j->own_from && word <= end) {
			word += j->moved;
			memcpy(j->to + at, &word, sizeof(word));
		}
	}
	return whole;
}

/* Append [@a, @b) of the goroutine's stack; not all may be there. */
static bool append_other(struct joining *j, uint64_t a, uint64_t b)
{
	const struct event_part *part = &j->other->part;
	uint64_t end = part->sp + part->len;

	if (!append(j, j->other->bytes + (a - part->sp), (b < end ? b : end) - a))
		return false;
	if (b > end)
		j->flags |= DWUNW_EVENT_STACK_LIMIT;
	return b <= end;
}

/* The own stack from where it was laid down to, up to the frame of the call that left the
 * goroutine's: as if that had not changed stacks. */
static bool append_call(struct joining *j)
{
	uint64_t end = return_slot(j, j->left) + 8;

	return end + j->program->call.frame <= j->own->sp + j->own->len && j->own_from < end &&
	       append_own(j, j->own_from, end) && append_own(j, end, end + j->program->call.frame);
}

/* How many words of the goroutine's stack from @j->from on are the return address of a callback;
 * the lowest is at *@lowest. */
static unsigned int count_returns(const struct joining *j, uint64_t *lowest)
{
	unsigned int nr = 0;
	uint64_t word;

	for (uint64_t at = j->from; other_word(j, at, &word); at += sizeof(word))
		if (word == j->program->callback.ret && !nr++)
			*lowest = at;
	return nr;
}

/* Was the call made from a goroutine that C has called?  Where that cannot be read, it was if there
 * may be a callback on the goroutine's stack. */
static bool is_callback(const struct joining *j)
{
	const struct go_callback *back = &j->program->callback;
	uint64_t ret, lowest;

	if (j->own->flags & DWUNW_EVENT_STACK_FAULT || !own_word(j, j->left + back->frame, &ret))
		return count_returns(j, &lowest) > 0;
	return ret >= back->from && ret < back->to;
}

/* Where the frame of the callback begins on the goroutine's stack.  @inner: that left another call,
 * with the stack pointer @from; else the thread was not Go's. */
static bool find_callback(const struct joining *j, bool inner, uint64_t from, uint64_t *frame)
{
	uint64_t word, lowest = 0;

	if (!inner) {
		/* Stale ones may lie below the one that counts. */
		if (count_returns(j, &lowest) != 1)
			return false;
		*frame = lowest + 8;
		return true;
	}
	*frame = from - 8 - j->program->callback.frame;
	return *frame > j->from && *frame < from && other_word(j, *frame - 8, &word) &&
	       word == j->program->callback.ret;
}

/* The stack goes on in a way that is not known: end before the callback. */
static void cut_callback(struct joining *j)
{
	uint64_t lowest = 0;

	if (count_returns(j, &lowest))
		append_other(j, j->from, lowest + 8);
	j->flags |= DWUNW_EVENT_STACK_ELSEWHERE;
}

/* Go back from the goroutine's stack to the own one, to the frame of the callback there.  Returns
 * whether there is another call above that; else all is done. */
static bool go_back(struct joining *j)
{
	uint64_t end = j->own->sp + j->own->len, before = 0, from = 0, frame;
	bool inner = own_word(j, j->left, &before) && before > j->left && is_call(j, before, &from);

	if (!find_callback(j, inner, from, &frame)) {
		cut_callback(j);
		return false;
	}
	if (!append_other(j, j->from, frame))
		return false;
	j->own_from = j->left;
	j->moved = j->own->sp + j->len - j->left;
	if (inner) {
		j->left = before;
		j->from = from;
		return true;
	}
	if (append_own(j, j->own_from, end & ~7ull))
		j->flags |= j->own->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_UNBOUNDED);
	return false;
}

static bool join(struct joining *j)
{
	uint64_t from;

	if (!is_call(j, j->left, &from) || from != j->from || !append_call(j))
		return false;
	for (;;) {
		if (!is_callback(j)) {
			append_other(j, j->from, j->other->part.hi);
			return true;
		}
		if (!go_back(j))
			return true;
		if (!append_call(j)) {
			j->flags |= DWUNW_EVENT_STACK_LIMIT;
			return true;
		}
	}
}

bool go_stacks_join(struct go_stacks *gs, const struct go_program *program, uint64_t id,
		    uint32_t limit, struct go_stack *s)
{
	struct kept *k = kept_of(gs, id);
	struct joining j = {
		.program = program,
		.own = s,
		.other = k,
		.to = gs->bytes,
		.limit = (limit < MAX_PART ? limit : MAX_PART) & ~7u,
		.left = k->part.left,
		.from = k->part.sp,
		.own_from = s->sp,
		.flags = (s->flags & (DWUNW_EVENT_RETURN_ADDRESS | DWUNW_EVENT_STACK_FAULT)) |
			 DWUNW_EVENT_STACK_JOINED};
	bool joined = k->bytes && k->part.id == id && !(s->sp & 7) && join(&j);

	free(k->bytes);
	k->bytes = NULL;
	if (joined)
		*s = (struct go_stack){s->sp, gs->bytes, j.len, j.flags};
	return joined;
}
