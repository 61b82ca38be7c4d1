/* write_event.c - an event into the thread's ring */
#include "record/libpreload/event/python.h"
#include "record/libpreload/event/reserve.h"
#include "record/libpreload/golang.h"
#include "record/libpreload/overrun.h"

/* What of a stack goes into an event: the aligned slices of [a, b). */
struct span {
	uint64_t a, b;
	uint32_t len, flags;
};

static struct span find_span(uint64_t sp)
{
	uint64_t page_end = (sp | 4095) + 1;
	struct span s = {.a = sp & ~(uint64_t)(PRELOAD_SLICE - 1),
			 .flags = DWUNW_EVENT_RETURN_ADDRESS};
	uint64_t end;

	if (LIKELY(thread_ring_on_stack(sp))) {
		end = preload_self.stack_hi;
		s.flags |= end - sp > preload_settings.stack_limit ? DWUNW_EVENT_STACK_LIMIT : 0;
	} else {
		/* Of another stack it is only known that this page is there. */
		end = page_end;
		s.flags |= DWUNW_EVENT_STACK_UNBOUNDED;
	}
	if (end - sp > preload_settings.stack_limit)
		end = sp + preload_settings.stack_limit;
	/* The slice that holds the stack's last byte lies on the same page as that. */
	s.b = (end + PRELOAD_SLICE - 1) & ~(uint64_t)(PRELOAD_SLICE - 1);
	s.len = (uint32_t)(end - sp);
	return s;
}

/* Fill lane->changed with the indices of slices that the recorder does not know; the first counts
 * as such, for below sp it holds what this library left there.  Returns how many. */
static uint32_t find_changed(struct thread_ring *lane, const struct span *s)
{
	uint64_t at = s->a + PRELOAD_SLICE;
	uint64_t lo = lane->known.lo > at ? lane->known.lo : at;
	uint64_t hi = lane->known.hi < s->b ? lane->known.hi : s->b;
	uint16_t i = 0;
	uint32_t nr = 0;

	lane->changed[nr++] = i++;
	for (; at < lo && at < s->b; at += PRELOAD_SLICE)
		lane->changed[nr++] = i++;
	if (at < hi) {
		nr += preload_compare(&lane->image, at, hi, lane->changed + nr, i);
		i = (uint16_t)(i + (hi - at) / PRELOAD_SLICE);
		at = hi;
	}
	for (; at < s->b; at += PRELOAD_SLICE)
		lane->changed[nr++] = i++;
	return nr;
}

/* The most that an event with @nr slices takes. */
static uint32_t alloc_bytes(uint32_t nr)
{
	return sizeof(struct preload_base) + preload_alloc_head(nr) + 8 * PRELOAD_NR_SAVED +
	       nr * PRELOAD_SLICE + PRELOAD_SPILL;
}

/* Write what changed of slice 0 to @to, where there is nothing of the caller's below @sp.  Returns
 * the end. */
static uint32_t *write_first(struct thread_ring *lane, uint64_t a, uint64_t sp, uint32_t *to,
			     uint32_t *mask)
{
	uint32_t all = a < lane->known.lo || a >= lane->known.hi ? UINT32_MAX : 0;
	uint32_t wanted = all ? all : UINT32_MAX << (sp - a) / 4;

	return preload_write(&lane->image, a, to, wanted, all, mask);
}

/* Write @nr slices behind the head of @e, whose registers end at @to.  Returns the end. */
static uint32_t *write_slices(struct thread_ring *lane, const struct span *s,
			      struct preload_alloc *e, uint32_t *to, uint64_t sp)
{
	uint32_t nr = e->nr_slices;
	uint16_t *index = (uint16_t *)(e->masks + nr);

	index[0] = 0;
	to = write_first(lane, s->a, sp, to, &e->masks[0]);
	for (uint32_t i = 1; i < nr; i++) {
		uint64_t at = s->a + (uint64_t)lane->changed[i] * PRELOAD_SLICE;
		bool known = at >= lane->known.lo && at < lane->known.hi;

		index[i] = lane->changed[i];
		to = preload_write(&lane->image, at, to, UINT32_MAX, known ? 0 : UINT32_MAX,
				   &e->masks[i]);
	}
	preload_image_note(&lane->known, s->a, s->b);
	return to;
}

/* The first slice alone. */
static void degrade(struct span *s, uint64_t sp)
{
	s->b = s->a + PRELOAD_SLICE;
	s->flags &= ~(uint32_t)DWUNW_EVENT_STACK_LIMIT;
	if (sp + s->len > s->b) {
		s->flags |= DWUNW_EVENT_STACK_DEGRADED;
		s->len = (uint32_t)(s->b - sp);
	}
}

/* Have the recorder know from where times and stack pointers count: @time and @sp.  Returns where
 * the event itself goes. */
static uint8_t *write_base(struct thread_ring *lane, uint8_t *to, uint64_t time, uint64_t sp)
{
	struct preload_base *b = (struct preload_base *)to;

	b->len8 = sizeof(*b) / 8;
	b->type = PRELOAD_BASE;
	b->time = time;
	b->sp = sp;
	lane->based = true;
	lane->last_time = time;
	lane->last_sp = sp;
	lane->head += sizeof(*b); /* published with what follows */
	return to + sizeof(*b);
}

struct preload_record *start_record(struct thread_ring *lane, uint8_t *to, uint64_t sp)
{
	struct preload_record *r;
	uint64_t time;

	lane_begin(lane);
	time = thread_ring_time();
	if (UNLIKELY((int64_t)(time - lane->last_time) < 0))
		time = lane->last_time;
	if (UNLIKELY(!lane->based || time - lane->last_time > UINT32_MAX ||
		     (int64_t)(sp - lane->last_sp) != (int32_t)(sp - lane->last_sp)))
		to = write_base(lane, to, time, sp);
	r = (struct preload_record *)to;
	r->after = (uint32_t)(time - lane->last_time);
	lane->last_time = time;
	return r;
}

/* The registers that are not as they were.  Returns the end. */
static uint64_t *write_regs(struct thread_ring *lane, const struct caller *c, uint64_t *to,
			    uint8_t *mask)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; UNLIKELY(!lane->regs_known) && i < PRELOAD_NR_SAVED; i++)
		lane->saved[i] = ~c->saved[i];
	lane->regs_known = true;
	for (uint32_t i = 0; i < PRELOAD_NR_SAVED; i++) {
		*to = c->saved[i];
		changed |= (uint32_t)(c->saved[i] != lane->saved[i]) << i;
		to += c->saved[i] != lane->saved[i];
		lane->saved[i] = c->saved[i];
	}
	*mask = (uint8_t)changed;
	return to;
}

/* Fill @e, whose record is begun, with the stack @s and the registers of @c.  Returns its length.
 */
static uint32_t write_alloc(struct thread_ring *lane, struct preload_alloc *e, const struct span *s,
			    const struct caller *c)
{
	uint64_t sp = (uint64_t)c->stack;
	uint64_t *regs = (uint64_t *)((uint8_t *)e + preload_alloc_head(e->nr_slices));
	uint32_t *end;

	e->pc = c->pc;
	e->sp_after = (int32_t)(sp - lane->last_sp);
	lane->last_sp = sp;
	e->stack_len = s->len;
	e->flags = (uint8_t)s->flags;
	end = (uint32_t *)write_regs(lane, c, regs, &e->regs);
	end = write_slices(lane, s, e, end, sp);
	return ((uint32_t)((uint8_t *)end - (uint8_t *)e) + 7) & ~7u;
}

/* Write the stack of the goroutine that called C here, for the event that is next.  False: there is
 * none, or no room. */
static bool write_part(struct preload_header *h, struct thread_ring *lane, uint64_t sp)
{
	struct golang_stack stack;
	struct preload_part *e;
	uint32_t len, bytes;
	uint8_t *to;

	if (LIKELY(!golang_is_on()) || !golang_find(&stack))
		return false;
	bytes = stack.hi - stack.sp < preload_settings.stack_limit ? (uint32_t)(stack.hi - stack.sp)
								   : preload_settings.stack_limit;
	bytes &= ~7u;
	len = (uint32_t)sizeof(*e) + bytes;
	if (len + sizeof(struct preload_base) > preload_settings.sizes.ring_size / 16 * 7)
		return false;
	to = lane_reserve(h, lane, len + (uint32_t)sizeof(struct preload_base),
			  (uint32_t)lane->size / 16);
	if (!to)
		return false;
	e = (struct preload_part *)start_record(lane, to, sp);
	e->record = (struct preload_record){.len8 = (uint16_t)(len / 8),
					    .type = EVENT_PART,
					    .after = e->record.after,
					    .addr = stack.g,
					    .size = stack.hi};
	e->left = stack.left;
	e->sp = stack.sp;
	for (uint32_t i = 0; i < bytes / 8; i++)
		((uint64_t *)e->bytes)[i] = ((const uint64_t *)stack.sp)[i];
	lane_publish(lane, len);
	return true;
}

void preload_alloc(enum event_func func, const void *addr, size_t size, const struct caller *c)
{
	uint64_t sp = (uint64_t)c->stack;
	struct preload_header *h = thread_ring_memory(sp, PRELOAD_LOST_ALLOC);
	struct preload_alloc *e;
	struct thread_ring *lane;
	struct span s;
	uint32_t nr, len, python;
	uint8_t *to;

	if (!h || (UNLIKELY(preload_settings.filter.on) && func != (enum event_func)FUNC_OVERRUN &&
		   !preload_sample_alloc(h, func, addr, size, c)))
		return;
	lane = thread_ring_enter(h, c->pc, sp, PRELOAD_LOST_ALLOC);
	if (UNLIKELY(!lane))
		return;
	python = preload_has_python();
	if (UNLIKELY(python))
		preload_python(h, lane, sp, python);
	s = find_span(sp);
	if (write_part(h, lane, sp))
		s.flags |= DWUNW_EVENT_STACK_JOINED;
	nr = find_changed(lane, &s);
	len = alloc_bytes(nr);
	if (UNLIKELY(len > preload_settings.sizes.ring_size / 16 * 7)) {
		degrade(&s, sp);
		nr = 1;
		len = alloc_bytes(nr);
	}
	/* Frees may use all of the ring: a lost one is a false leak. */
	to = lane_reserve(h, lane, len, (uint32_t)lane->size / 16);
	if (UNLIKELY(!to)) {
		thread_ring_lost(h, lane, PRELOAD_LOST_ALLOC);
		thread_ring_leave(lane);
		return;
	}
	e = (struct preload_alloc *)start_record(lane, to, sp);
	e->record.type = EVENT_ALLOC;
	e->record.func = (uint8_t)func;
	e->record.addr = (uint64_t)addr;
	e->record.size = size;
	e->nr_slices = (uint16_t)nr;
	len = write_alloc(lane, e, &s, c);
	e->record.len8 = (uint16_t)(len / 8);
	lane_publish(lane, len);
	thread_ring_leave(lane);
}

void preload_overrun(uint64_t addr, uint64_t size, const struct overrun *overrun, uint64_t pc)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct preload_header *h = thread_ring_memory(sp, PRELOAD_LOST_OVERRUN);
	struct thread_ring *lane = h ? thread_ring_enter(h, pc, sp, PRELOAD_LOST_OVERRUN) : NULL;
	struct preload_overrun *e;
	uint8_t *to;

	if (!lane)
		return;
	to = lane_reserve(h, lane, sizeof(struct preload_base) + sizeof(*e), 0);
	if (UNLIKELY(!to)) {
		thread_ring_lost(h, NULL, PRELOAD_LOST_OVERRUN);
		thread_ring_leave(lane);
		return;
	}
	e = (struct preload_overrun *)start_record(lane, to, lane->based ? lane->last_sp : sp);
	e->record.len8 = sizeof(*e) / 8;
	e->record.type = EVENT_OVERRUN;
	e->record.func = 0;
	e->record.addr = addr;
	e->record.size = size;
	e->overrun = *overrun;
	lane_publish(lane, sizeof(*e));
	thread_ring_leave(lane);
}

static enum preload_loss loss_of(enum event_type type)
{
	switch (type) {
	case EVENT_RELEASE:
		return PRELOAD_LOST_RELEASE;
	case EVENT_RESTORE:
		return PRELOAD_LOST_RESTORE;
	case EVENT_UNMAP:
	case EVENT_ACCESSIBLE:
	case EVENT_GIVEN_BACK:
	case EVENT_LAZILY:
		return PRELOAD_LOST_UNMAP;
	default:
		return PRELOAD_LOST_FREE;
	}
}

void preload_small(enum event_type type, const void *addr, uint64_t size, uint64_t pc)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct preload_header *h = thread_ring_memory(sp, loss_of(type));
	struct preload_record *e;
	bool unsure = false;
	struct thread_ring *lane;
	uint32_t len;
	uint8_t *to;

	if (!h || (UNLIKELY(preload_settings.filter.on) &&
		   !preload_sample_free(h, &type, addr, size, pc, &unsure)))
		return;
	lane = thread_ring_enter(h, pc, sp, loss_of(type));
	if (UNLIKELY(!lane))
		return;
	len = event_has_range(type) ? PRELOAD_SMALL + 8 : PRELOAD_SMALL;
	to = lane_reserve(h, lane, len + (uint32_t)sizeof(struct preload_base), 0);
	if (UNLIKELY(!to)) {
		thread_ring_lost(h, lane, loss_of(type));
		thread_ring_leave(lane);
		return;
	}
	e = start_record(lane, to, lane->based ? lane->last_sp : sp);
	e->len8 = (uint16_t)(len / 8);
	e->type = (uint8_t)type;
	e->func = unsure;
	e->addr = (uint64_t)addr;
	if (event_has_range(type))
		e->size = size;
	lane_publish(lane, len);
	thread_ring_leave(lane);
}
