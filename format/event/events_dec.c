/* events_dec.c - columns to events; nothing here is believed before it is checked */
#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"

/* An empty dictionary.  The numbers below the first have the word 0, as MLK_WORD_ZERO says. */
static int clear_words(struct mlk_decoder *c)
{
	const size_t first = c->coding >= MLK_CODING_3 ? MLK_WORD_FIRST : MLK_WORD_FIRST_1;
	int err = 0;

	c->nr_words = 0;
	while (!err && c->nr_words < first)
		err = mlk_append(&c->words, &c->nr_words, &c->room_words, 0);
	return err;
}

/* How many columns a payload has at least whose first byte, mode and coding, is @head. */
static size_t nr_columns(uint8_t head)
{
	return head >> 4 == MLK_CODING_0 ? MLK_COL_NR_0 : MLK_COL_NR_1;
}

/* Are the columns of a payload with the first byte @head such as are read here? */
static bool known_coding(uint8_t head)
{
	enum mlk_coding coding = head >> 4;

	return coding <= MLK_CODING_4 && coding != MLK_CODING_2;
}

/* Read the first byte of a payload and its columns; those that there are not are empty.  Columns of
 * a later version come behind those known here, and are left alone. */
static int find_columns(struct mlk_dec *d, uint8_t *head, struct mlk_dec *columns)
{
	*head = mlk_dec_u8(d);
	memset(columns, 0, MLK_COL_NR * sizeof(*columns));
	mlk_dec_columns_from(d, columns, nr_columns(*head),
			     *head >> 4 == MLK_CODING_0 ? MLK_COL_NR_0 : MLK_COL_NR);
	if (d->bad || (*head & 0xf) > MLK_STACK_REDACTED || !known_coding(*head))
		return MLK_E_CORRUPT;
	return 0;
}

int mlk_decoder_begin(struct mlk_decoder *c, struct mlk_dec *d, uint64_t first_ns, bool heads)
{
	uint8_t head;
	int err;

	mlk_streams_trim(c->streams, c->nr);
	c->covered = NULL;
	c->time_ns = first_ns;
	c->addr = c->alloc_id = c->new_word = c->held = 0;
	c->nr = 0;
	mlk_reuse_begin(&c->reuse);
	mlk_frames_dec_begin(&c->frames);
	err = find_columns(d, &head, c->columns);
	if (err)
		return err;
	c->mode = head & 0xf;
	c->coding = head >> 4;
	if (c->coding != MLK_CODING_0 && !heads)
		mlk_predict_reset(&c->predict);
	return clear_words(c);
}

int mlk_events_copy_heads(struct mlk_dec *d, struct mlk_enc *to)
{
	struct mlk_dec columns[MLK_COL_NR];
	struct mlk_enc kept[MLK_COL_NR] = {{0}};
	uint8_t head;
	int err = find_columns(d, &head, columns);

	if (err)
		return err;
	for (int i = 0; i < MLK_COL_NR; i++)
		if (i < MLK_COL_REGS || i == MLK_COL_TIME_HIGH)
			mlk_enc_bytes(&kept[i], columns[i].at,
				      (size_t)(columns[i].end - columns[i].at));
	mlk_enc_u8(to, head);
	mlk_enc_columns(to, kept, nr_columns(head));
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_release(&kept[i]);
	return 0;
}

void mlk_decoder_release(struct mlk_decoder *c)
{
	mlk_streams_trim(c->streams, c->room);
	free(c->streams);
	free(c->words);
	mlk_reuse_release(&c->reuse);
	mlk_frames_dec_release(&c->frames);
	memset(c, 0, sizeof(*c));
}

bool mlk_decoder_more(const struct mlk_decoder *c)
{
	return c->columns[MLK_COL_KIND].at < c->columns[MLK_COL_KIND].end;
}

static struct mlk_stream *decode_thread(struct mlk_decoder *c)
{
	struct mlk_dec *d = &c->columns[MLK_COL_THREAD];
	uint64_t number = mlk_dec_uvar_max(d, c->nr);
	uint32_t id[2];

	if (d->bad)
		return NULL;
	if (number)
		return &c->streams[number - 1];
	if (c->nr >= (c->coding == MLK_CODING_0 ? MLK_MAX_STREAMS_0 : MLK_MAX_STREAMS)) {
		d->bad = true; /* more than any writer has: this is to exhaust our memory */
		return NULL;
	}
	id[0] = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	id[1] = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	return mlk_stream_add(&c->streams, &c->nr, &c->room, id);
}

/* Where the block of @size bytes is that was allocated, by the head of its record. */
static uint64_t decode_place(struct mlk_decoder *c, uint8_t head, uint64_t size)
{
	struct mlk_expected expected;

	if (c->coding < MLK_CODING_3)
		return mlk_dec_delta(&c->columns[MLK_COL_ADDR], c->addr);
	expected = mlk_reuse_expect(&c->reuse, size);
	if (head & MLK_HEAD_FIRST)
		return expected.first;
	return head & MLK_HEAD_SECOND ? expected.second
				      : mlk_dec_delta(&c->columns[MLK_COL_ADDR], c->addr);
}

static int decode_alloc(struct mlk_decoder *c, uint8_t head, struct mlk_event *ev)
{
	ev->size = mlk_dec_uvar(&c->columns[MLK_COL_SIZE]);
	ev->addr = decode_place(c, head, ev->size);
	ev->func = mlk_dec_u8(&c->columns[MLK_COL_FUNC]);
	ev->alloc_id = c->alloc_id = mlk_dec_delta(&c->columns[MLK_COL_ID], c->alloc_id + 1);
	ev->flags = (uint32_t)mlk_dec_uvar_max(&c->columns[MLK_COL_FLAGS], UINT32_MAX);
	return mlk_reuse_add(&c->reuse, ev->addr, ev->size);
}

static uint64_t decode_freed(struct mlk_decoder *c, unsigned int kind)
{
	struct mlk_dec *d = &c->columns[MLK_COL_ADDR];
	uint64_t ago = mlk_dec_uvar_max(d, c->reuse.nr), block = c->reuse.nr - ago;

	if (!ago)
		return mlk_dec_delta(d, c->addr);
	if (mlk_kind_frees(kind))
		mlk_reuse_freed(&c->reuse, block + 1);
	return c->reuse.blocks[block].addr;
}

static void decode_other(struct mlk_decoder *c, struct mlk_event *ev)
{
	if (mlk_kind_has_addr(ev->kind))
		ev->addr = decode_freed(c, ev->kind);
	if (ev->kind == MLK_PAGES)
		ev->func = mlk_dec_u8(&c->columns[MLK_COL_FUNC]);
	if (mlk_kind_has_range(ev->kind))
		ev->size = mlk_dec_uvar(&c->columns[MLK_COL_SIZE]);
	else if (ev->kind == MLK_FORK)
		ev->addr = mlk_dec_uvar_max(&c->columns[MLK_COL_SIZE], UINT32_MAX);
}

static uint64_t decode_time(struct mlk_decoder *c)
{
	uint64_t low;

	if (c->coding == MLK_CODING_0)
		return mlk_dec_delta(&c->columns[MLK_COL_TIME], c->time_ns);
	low = mlk_dec_u8(&c->columns[MLK_COL_TIME]);
	return c->time_ns + low + (mlk_dec_delta(&c->columns[MLK_COL_TIME_HIGH], 0) << 8);
}

/* Is there such a record in a chunk of this coding? */
static bool known_head(const struct mlk_decoder *c, uint8_t head)
{
	unsigned int kind = head & MLK_HEAD_KIND, place = head & (MLK_HEAD_FIRST | MLK_HEAD_SECOND);

	if (!kind || kind >= MLK_KIND_NR)
		return false;
	if (place && (c->coding < MLK_CODING_3 || kind != MLK_ALLOC ||
		      place == (MLK_HEAD_FIRST | MLK_HEAD_SECOND)))
		return false;
	if (c->coding == MLK_CODING_0 && kind > MLK_EXEC)
		return false;
	return kind == MLK_FREE || !(head & MLK_HEAD_NESTED);
}

/* Was more asked of a column than there is?  Of those that the head of a record of @kind is read
 * from. */
static bool bad_head(const struct mlk_decoder *c, unsigned int kind)
{
	const struct mlk_dec *column = c->columns;
	bool bad = column[MLK_COL_KIND].bad | column[MLK_COL_THREAD].bad |
		   column[MLK_COL_TIME].bad | column[MLK_COL_TIME_HIGH].bad |
		   column[MLK_COL_ADDR].bad | column[MLK_COL_SIZE].bad;

	if (kind == MLK_ALLOC || kind == MLK_PAGES)
		bad |= column[MLK_COL_FUNC].bad;
	if (kind == MLK_ALLOC)
		bad |= column[MLK_COL_ID].bad | column[MLK_COL_FLAGS].bad;
	return bad;
}

/* And of those of its registers and its stack. */
static bool bad_stack(const struct mlk_decoder *c)
{
	bool bad = false;

	for (int i = MLK_COL_REGS; i < MLK_COL_NR; i++)
		bad |= c->columns[i].bad;
	return bad;
}

/* Make the first @len bytes of @ev zero.  By a call, which is faster than what a compiler makes of
 * a length it knows: this is done for each event. */
static void clear_event(struct mlk_event *ev, size_t len)
{
	__asm__("" : "+r"(len));
	memset(ev, 0, len);
}

/* Read what of a record is not its registers and its stack into @ev, which is zero; *@of is its
 * thread. */
static int decode_head(struct mlk_decoder *c, struct mlk_event *ev, struct mlk_stream **of)
{
	uint8_t head = mlk_dec_u8(&c->columns[MLK_COL_KIND]);
	struct mlk_stream *s;
	int err = 0;

	ev->kind = head & MLK_HEAD_KIND;
	if (!known_head(c, head))
		return MLK_E_CORRUPT;
	if (head & MLK_HEAD_NESTED)
		ev->flags = MLK_EVENT_NESTED;
	*of = s = decode_thread(c);
	if (!s)
		return c->columns[MLK_COL_THREAD].bad ? MLK_E_CORRUPT : -ENOMEM;
	ev->tgid = s->tgid;
	ev->tid = s->tid;
	ev->time_ns = c->time_ns = decode_time(c);
	if (ev->kind == MLK_ALLOC)
		err = decode_alloc(c, head, ev);
	else
		decode_other(c, ev);
	if (mlk_kind_has_addr(ev->kind)) {
		c->addr = ev->addr;
		mlk_predict_came(&c->predict, ev->addr);
	}
	return err ? err : bad_head(c, ev->kind) ? MLK_E_CORRUPT : 0;
}

int mlk_decoder_next(struct mlk_decoder *c, struct mlk_event *ev)
{
	struct mlk_stream *s;
	int err;

	mlk_decode_uncover(c);
	clear_event(ev, sizeof(*ev));
	err = decode_head(c, ev, &s);
	if (err || ev->kind != MLK_ALLOC)
		return err;
	err = mlk_decode_stack(c, s, ev);
	if (!err && c->columns[MLK_COL_FRAMES].at)
		err = mlk_frames_decode(&c->frames, &c->columns[MLK_COL_FRAMES],
					&c->columns[MLK_COL_FRAME_STACKS], ev);
	return err ? err : bad_stack(c) ? MLK_E_CORRUPT : 0;
}

int mlk_decoder_next_head(struct mlk_decoder *c, struct mlk_event *ev)
{
	struct mlk_stream *s;

	clear_event(ev, offsetof(struct mlk_event, regs));
	return decode_head(c, ev, &s);
}
