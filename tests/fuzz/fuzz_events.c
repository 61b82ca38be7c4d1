/* fuzz_events.c - EVENTS payloads: what decodes is encoded again, in each mode, and decodes to the
 * same
 *
 * The first byte says what follows: 0, a payload; 1, its mode and columns, each with a u16 for its
 * length; else, events to be encoded, in a simple form of their own.
 */
#include <errno.h>

#include "format/event/events.h"
#include "tests/fuzz/records.h"

#define MAX_EVENTS  128
#define STACK_BYTES (1u << 20) /* of all events kept */
#define MEMORY_MAX  (512u << 20)

#define CODE	 0x55aa00001000ull
#define CODE_LEN 0x300000u
#define MIB	 (1ull << 20)

struct list {
	struct mlk_event events[MAX_EVENTS];
	size_t nr;
	uint8_t *stacks;
	size_t used;
};

/* Keep @ev with its stack.  False: no more room. */
static bool keep(struct list *l, const struct mlk_event *ev)
{
	if (l->nr == MAX_EVENTS || ev->stack_len > STACK_BYTES - l->used)
		return false;
	l->events[l->nr] = *ev;
	if (ev->stack_len) {
		memcpy(l->stacks + l->used, ev->stack, ev->stack_len);
		l->events[l->nr].stack = l->stacks + l->used;
	}
	l->used += ev->stack_len;
	l->nr++;
	return true;
}

static struct list *list_new(void)
{
	struct list *l = calloc(1, sizeof(*l));

	FUZZ_CHECK(l);
	l->stacks = malloc(STACK_BYTES);
	FUZZ_CHECK(l->stacks);
	return l;
}

static void list_free(struct list *l)
{
	free(l->stacks);
	free(l);
}

/* What is said to be the same as in the stack before is. */
static void check_same(const struct list *l, const struct mlk_event *ev)
{
	uint64_t from = ev->stack_same_from, end = ev->regs[MLK_SP_REG] + ev->stack_len;
	const struct mlk_event *last = NULL;

	for (size_t i = 0; i < l->nr; i++)
		if (l->events[i].kind == MLK_ALLOC && l->events[i].tid == ev->tid &&
		    l->events[i].tgid == ev->tgid)
			last = &l->events[i];
	if (ev->kind != MLK_ALLOC || from == UINT64_MAX)
		return;
	FUZZ_CHECK(last && last->regs[MLK_SP_REG] + last->stack_len == end);
	FUZZ_CHECK(from < end && from >= ev->regs[MLK_SP_REG] && from >= last->regs[MLK_SP_REG]);
	FUZZ_CHECK(!memcmp(ev->stack + (from - ev->regs[MLK_SP_REG]),
			   last->stack + (from - last->regs[MLK_SP_REG]), end - from));
}

/* Are the heads of two decoders the same, as far as there are any? */
static void compare_heads(struct mlk_decoder *a, struct mlk_decoder *b)
{
	struct mlk_event x, y;
	int err = 0;

	while (!err && mlk_decoder_more(a)) {
		FUZZ_CHECK(mlk_decoder_more(b));
		err = mlk_decoder_next_head(a, &x);
		FUZZ_CHECK(mlk_decoder_next_head(b, &y) == err);
		FUZZ_CHECK(err || !memcmp(&x, &y, offsetof(struct mlk_event, regs)));
	}
	FUZZ_CHECK(err || !mlk_decoder_more(b));
	FUZZ_CHECK(!err || err == MLK_E_CORRUPT);
}

/* The heads of @payload, read alone, are those of a copy of them. */
static void check_heads(const uint8_t *payload, size_t len)
{
	struct mlk_dec d = {.at = payload, .end = payload + len}, again = d, heads;
	struct mlk_decoder whole = {0}, copied = {0};
	struct mlk_enc copy = {0};
	int err = mlk_decoder_begin(&whole, &d, 1000, true);

	FUZZ_CHECK(mlk_events_copy_heads(&again, &copy) == err);
	FUZZ_CHECK(!copy.failed);
	if (!err) {
		heads = (struct mlk_dec){.at = copy.buf, .end = copy.buf + copy.len};
		FUZZ_CHECK(!mlk_decoder_begin(&copied, &heads, 1000, true));
		compare_heads(&whole, &copied);
	}
	mlk_enc_release(&copy);
	mlk_decoder_release(&whole);
	mlk_decoder_release(&copied);
}

/* Decode the @len bytes of @payload, all of them; the first events are kept in @l. */
static int decode(struct list *l, const uint8_t *payload, size_t len)
{
	struct mlk_dec d = {.at = payload, .end = payload + len};
	struct mlk_decoder c = {0};
	struct fuzz_seen seen = {0};
	struct mlk_event ev;
	bool room = true;
	int err = mlk_decoder_begin(&c, &d, 1000, false);

	check_heads(payload, len);
	while (!err && mlk_decoder_more(&c)) {
		err = mlk_decoder_next(&c, &ev);
		if (err)
			break;
		fuzz_see_event(&seen, &ev);
		if (room)
			check_same(l, &ev);
		room = room && keep(l, &ev);
	}
	FUZZ_CHECK(!err || err == MLK_E_CORRUPT);
	mlk_decoder_release(&c);
	return err;
}

static uint64_t word_at(const struct mlk_event *ev, uint64_t addr)
{
	uint64_t word = 0;

	memcpy(&word, ev->stack + (addr - ev->regs[MLK_SP_REG]), sizeof(word));
	return le64toh(word);
}

/* May an unwinder need @word?  Then the filter keeps it, whatever events came before. */
static bool needed(uint64_t word, uint64_t sp)
{
	return word - CODE < CODE_LEN || word - sp < 13 * MIB;
}

/* Must the filter take @word out, whatever events came before? */
static bool secret(uint64_t word, uint64_t sp)
{
	return word - CODE >= CODE_LEN && word - (sp - 4 * MIB) >= 24 * MIB;
}

static void check_word(uint64_t was, uint64_t is, uint64_t sp)
{
	FUZZ_CHECK(is == was || !is);
	FUZZ_CHECK(is == was || !needed(was, sp));
	FUZZ_CHECK(!is || !secret(was, sp));
}

/* @b's stack is that of @a as @mode keeps it; what is not one whole word is cut off. */
static void check_stack(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	uint64_t sp = a->regs[MLK_SP_REG], lo = sp & ~7ull, end = (sp + a->stack_len) & ~7ull;
	uint64_t whole = mode == MLK_STACK_RAW ? MLK_MAX_STACK + 8 : 128;

	FUZZ_CHECK(b->stack_len == (end > sp ? end - sp : 0));
	if (!b->stack_len)
		return;
	if (lo != sp && mode != MLK_STACK_REDACTED)
		FUZZ_CHECK(!memcmp(a->stack, b->stack, lo + 8 - sp));
	for (uint64_t at = lo == sp ? lo : lo + 8; at != end; at += 8) {
		if (mode != MLK_STACK_REDACTED && at - lo < whole)
			FUZZ_CHECK(word_at(a, at) == word_at(b, at));
		else
			check_word(word_at(a, at), word_at(b, at), sp);
	}
}

static void check_event(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	FUZZ_CHECK(a->kind == b->kind && a->tgid == b->tgid && a->tid == b->tid);
	FUZZ_CHECK(a->time_ns == b->time_ns && a->flags == b->flags && a->addr == b->addr);
	FUZZ_CHECK(a->size == b->size);
	if (a->kind != MLK_ALLOC)
		return;
	FUZZ_CHECK(a->func == b->func && a->alloc_id == b->alloc_id);
	FUZZ_CHECK(a->nr_regs == b->nr_regs);
	for (int r = 0; r < a->nr_regs; r++)
		if (mode != MLK_STACK_REDACTED || r == MLK_SP_REG)
			FUZZ_CHECK(a->regs[r] == b->regs[r]);
		else
			check_word(a->regs[r], b->regs[r], a->regs[MLK_SP_REG]);
	check_stack(a, b, mode);
}

/* Encode the events of @l as @mode keeps them, decode that, and compare. */
static void round_trip(const struct list *l, enum mlk_stack_mode mode)
{
	const struct mlk_mapping code = {
		.start = CODE, .end = CODE + CODE_LEN, .perms = MLK_PERM_X, .path = ""};
	struct list *back = list_new();
	struct mlk_encoder e = {.filter.mode = mode};
	struct mlk_enc payload = {0};

	mlk_filter_set_code(&e.filter, &code, 1);
	mlk_encoder_begin(&e, 1000);
	for (size_t i = 0; i < l->nr; i++)
		FUZZ_CHECK(mlk_encoder_add(&e, &l->events[i]) == 0);
	mlk_encoder_finish(&e, &payload);
	FUZZ_CHECK(!payload.failed);
	mlk_encoder_release(&e);
	FUZZ_CHECK(decode(back, payload.buf, payload.len) == 0);
	FUZZ_CHECK(back->nr == l->nr);
	for (size_t i = 0; i < l->nr; i++)
		check_event(&l->events[i], &back->events[i], mode);
	mlk_enc_release(&payload);
	list_free(back);
}

/* Mode and columns to a payload. */
static void make_payload(struct mlk_enc *out, struct fuzz_in in)
{
	const uint8_t *column[MLK_COL_NR];
	size_t len[MLK_COL_NR];

	uint64_t form = fuzz_take(&in, 1);
	int nr = form / 3 % 2 ? MLK_COL_NR : MLK_COL_NR_0;

	mlk_enc_u8(out, (uint8_t)(form % 3 | (form / 3 % 2) << 4));
	mlk_enc_u8(out, (uint8_t)nr);
	for (int i = 0; i < nr; i++) {
		len[i] = (size_t)fuzz_take(&in, 2);
		if (len[i] > fuzz_left(&in))
			len[i] = fuzz_left(&in);
		column[i] = in.at;
		in.at += len[i];
		mlk_enc_uvar(out, len[i]);
	}
	for (int i = 0; i < nr; i++)
		mlk_enc_bytes(out, column[i], len[i]);
}

/* An address or a value, of a kind that matters to the format. */
static uint64_t take_word(struct fuzz_in *in, uint64_t sp)
{
	switch (fuzz_take(in, 1) % 8) {
	case 0:
		return 0;
	case 1:
		return CODE + fuzz_take(in, 2);
	case 2:
		return sp + 8 * fuzz_take(in, 2);
	case 3:
		return sp - 8 * fuzz_take(in, 2);
	case 4:
		return fuzz_take(in, 8);
	case 5:
		return sp + (fuzz_take(in, 1) - 128) * MIB / 8;
	default:
		return fuzz_take(in, 1);
	}
}

/* Where the stacks end: somewhere, at the bottom of the address space, or at its top. */
static uint64_t take_top(struct fuzz_in *in)
{
	static const uint64_t tops[] = {0x7ffd00000000, 0x7ffd00100000, MLK_MAX_STACK, 0};

	return tops[fuzz_take(in, 1) % 4] - 8;
}

#define WORLD MLK_MAX_STACK

static bool write_event(struct fuzz_in *in, uint8_t *world, uint64_t top, struct list *l)
{
	struct mlk_event ev = {.kind = (uint8_t)(1 + fuzz_take(in, 1) % (MLK_KIND_NR - 1)),
			       .tgid = 7};
	uint64_t depth, len;

	ev.tid = (uint32_t)fuzz_take(in, 1) % 4;
	ev.time_ns = 1000 + take_word(in, 1000);
	if (mlk_kind_has_addr(ev.kind))
		ev.addr = take_word(in, 0x10000);
	else if (ev.kind == MLK_FORK)
		ev.addr = fuzz_take(in, 4);
	if (mlk_kind_has_range(ev.kind))
		ev.size = take_word(in, 0);
	if (ev.kind == MLK_PAGES)
		ev.func = (uint8_t)fuzz_take(in, 1);
	if (ev.kind == MLK_FREE)
		ev.flags = fuzz_take(in, 1) % 2 ? MLK_EVENT_NESTED : 0;
	if (ev.kind != MLK_ALLOC)
		return keep(l, &ev);
	ev.flags = (uint32_t)fuzz_take(in, 1) % 32;
	ev.size = take_word(in, 0);
	ev.alloc_id = take_word(in, l->nr);
	ev.func = (uint8_t)fuzz_take(in, 1);
	ev.nr_regs = (uint16_t)(MLK_SP_REG + 1 + fuzz_take(in, 1) % (MLK_MAX_REGS - MLK_SP_REG));
	depth = fuzz_take(in, 2) % (MLK_MAX_STACK - 8);
	len = depth < fuzz_take(in, 2) ? depth : depth / 2;
	ev.regs[MLK_SP_REG] = top - depth;
	for (uint64_t n = fuzz_take(in, 1) % 8; n; n--)
		ev.regs[fuzz_take(in, 1) % ev.nr_regs % MLK_SP_REG] = take_word(in, top - depth);
	for (uint64_t n = fuzz_take(in, 1) % 16; n && depth >= 8; n--) {
		uint64_t at = WORLD - depth + fuzz_take(in, 2) % (depth / 8) * 8;
		uint64_t word = htole64(take_word(in, top - depth));

		memcpy(world + at, &word, sizeof(word));
	}
	ev.stack = world + WORLD - depth;
	ev.stack_len = (uint32_t)len;
	return keep(l, &ev);
}

static void take_events(struct list *l, struct fuzz_in in)
{
	uint8_t *world = calloc(1, WORLD);
	uint64_t top = take_top(&in);

	FUZZ_CHECK(world);
	while (in.at < in.end && write_event(&in, world, top, l))
		;
	free(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	struct mlk_enc payload = {0};
	struct list *l;
	uint64_t form = fuzz_take(&in, 1);

	fuzz_memory_limit(MEMORY_MAX);
	l = list_new();
	if (form == 0)
		decode(l, in.at, fuzz_left(&in));
	else if (form == 1) {
		make_payload(&payload, in);
		decode(l, payload.buf, payload.len);
	} else {
		take_events(l, in);
	}
	/* Registers that an event did not carry are those of the thread's event before. */
	for (size_t i = 0; i < l->nr; i++)
		memset(l->events[i].regs + l->events[i].nr_regs, 0,
		       (MLK_MAX_REGS - l->events[i].nr_regs) * sizeof(l->events[i].regs[0]));
	round_trip(l, MLK_STACK_RAW);
	round_trip(l, MLK_STACK_FILTERED);
	round_trip(l, MLK_STACK_REDACTED);
	mlk_enc_release(&payload);
	list_free(l);
	return 0;
}
